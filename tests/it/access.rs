//! FAULTS F26: everything that an attacker tries at the dashboard's door, against the real program.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::door::{Guarded, REST, REVOKED, plain, refused, token};
use crate::harness::jwt::Provider;
use crate::harness::node::Node;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

#[test]
fn tokens_open_what_their_role_may_and_nothing_once_revoked() {
    let door = Guarded::start("");
    let nobody = door.get("/metrics").send();
    refused(&nobody, 401);
    assert!(
        nobody
            .header("www-authenticate")
            .unwrap()
            .starts_with("Bearer")
    );
    for token in [&door.viewer, &door.operator] {
        let answer = door.get("/metrics").bearer(&token.text).send();
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("meridian_ready"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    refused(&door.get("/metrics").bearer(&door.peer.text).send(), 403);
    for wrong in [
        door.get("/metrics").bearer("mrd_0"),
        door.get("/metrics").bearer(&door.viewer.line),
        door.get("/metrics")
            .bearer(&format!("{}0", door.viewer.text)),
        door.get("/metrics").bearer(""),
        door.get("/metrics").with("Authorization", "Basic dTpw"),
        door.get("/metrics")
            .bearer(&door.viewer.text)
            .bearer(&door.viewer.text),
        door.get(&format!("/metrics?access_token={}", door.viewer.text)),
        door.get("/metrics")
            .with("Cookie", &format!("meridian-8053={}", "0".repeat(64))),
    ] {
        refused(&wrong.send(), 401);
    }
    let page = door
        .get("/metrics?a=b&c")
        .with("Accept", "text/html")
        .send();
    assert_eq!(page.status, 303);
    assert_eq!(
        page.header("location"),
        Some("/login?next=/metrics%3Fa%3Db%26c")
    );
    for open in ["/livez", "/readyz"] {
        assert_eq!(door.get(open).send().status, 200);
    }
    // Rotation without a gap, then revocation by line and by file.
    let next = token();
    door.write("v", &format!("{}\n{}\n", door.viewer.line, next.line));
    door.wait("the next token", 200, || {
        door.get("/metrics").bearer(&next.text)
    });
    assert_eq!(
        door.get("/metrics").bearer(&door.viewer.text).send().status,
        200
    );
    door.write("v", &format!("{}\nmrd_forgotten\n", next.line));
    door.wait("the revocation", 401, || {
        door.get("/metrics").bearer(&door.viewer.text)
    });
    assert_eq!(door.get("/metrics").bearer(&next.text).send().status, 200);
    std::fs::remove_file(door.node.folder().join("v")).unwrap();
    door.wait("the end of the file", 401, || {
        door.get("/metrics").bearer(&next.text)
    });
    assert_eq!(
        door.get("/metrics")
            .bearer(&door.operator.text)
            .send()
            .status,
        200
    );
}

#[test]
fn a_reload_puts_tokens_in_force_and_refuses_other_listeners() {
    let mut door = Guarded::start("");
    let text = door.node.config();
    let (cut, _) = text.split_once(", {name: sre").unwrap();
    door.node.write_config(&format!("{cut}]}}\n{REST}"));
    door.node.process().signal("HUP");
    door.wait("the reload", 401, || {
        door.get("/metrics").bearer(&door.operator.text)
    });
    assert_eq!(
        door.get("/metrics").bearer(&door.viewer.text).send().status,
        200
    );
    let other = text.replacen("anonymous: none", "tls: {certificate: c, key: k}", 1);
    door.node.write_config(&other);
    door.node.process().signal("HUP");
    wait_for("the refusal", REVOKED, || {
        let log = door.node.process().log();
        log.contains("admin.tls cannot change while running")
            .then_some(())
    });
    assert_eq!(
        door.get("/metrics").bearer(&door.viewer.text).send().status,
        200
    );
}

#[test]
fn whoever_guesses_waits_and_nobody_else() {
    let door = Guarded::start("");
    let attacker = loopback();
    let session = door.sign_in(&door.operator.text, "/").cookie();
    for _ in 0..10 {
        refused(
            &door
                .get("/metrics")
                .from(attacker)
                .bearer("mrd_guess")
                .send(),
            401,
        );
    }
    let right = door
        .get("/metrics")
        .from(attacker)
        .bearer(&door.viewer.text)
        .send();
    refused(&right, 429);
    let wait: u64 = right.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    let form = format!("token={}", door.viewer.text);
    refused(
        &Web::form(door.to, "/login", &form).from(attacker).send(),
        429,
    );
    assert_eq!(
        door.get("/metrics").bearer(&door.viewer.text).send().status,
        200
    );
    let signed_in = door.get("/metrics").from(attacker).with("Cookie", &session);
    assert_eq!(signed_in.send().status, 200);
}

#[test]
fn sessions_by_cookie_cannot_be_forged_from_another_site() {
    let door = Guarded::start("");
    let answer = door.sign_in(&door.operator.text, "/metrics");
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/metrics"))
    );
    let set = answer.header("set-cookie").unwrap();
    for part in [
        "meridian-8053=",
        "; HttpOnly",
        "; SameSite=Strict",
        "; Path=/",
    ] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Domain") && !set.contains(&door.operator.text));
    let cookie = answer.cookie();
    let get = || {
        door.get("/metrics")
            .with("Cookie", &format!("a=b; {cookie}"))
    };
    assert_eq!(get().send().status, 200);
    let post = || Web::new(door.to, "POST", "/logout").with("Cookie", &cookie);
    let (own, form) = (
        format!("http://{}", door.to),
        "application/x-www-form-urlencoded",
    );
    for (web, status) in [
        (post().with("Origin", "https://evil.example"), 403),
        (post().with("Origin", "null"), 403),
        (post().with("Sec-Fetch-Site", "cross-site"), 403),
        (post(), 403),
        (
            post()
                .with("Origin", &own)
                .with("Content-Type", "text/plain")
                .body("a"),
            415,
        ),
        (post().with("Origin", &own).body("a"), 415),
        (
            Web::new(door.to, "PUT", "/metrics").with("Cookie", &cookie),
            403,
        ),
        (
            Web::new(door.to, "POST", "/login")
                .with("Content-Type", form)
                .body("token=a"),
            403,
        ),
        (
            Web::new(door.to, "POST", "/login")
                .with("Origin", "http://evil.example")
                .body(""),
            403,
        ),
    ] {
        refused(&web.send(), status);
    }
    assert_eq!(get().send().status, 200, "the session still stands");
    let out = post().with("Sec-Fetch-Site", "same-origin").send();
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    refused(&get().send(), 401);
    // A session ends with its token.
    let cookie = door.sign_in(&door.viewer.text, "").cookie();
    let get = || door.get("/metrics").with("Cookie", &cookie);
    assert_eq!(get().send().status, 200);
    door.write("v", "# nobody\n");
    door.wait("the end of the session", 401, get);
    door.write("v", &door.viewer.line);
    door.wait("the token", 200, || {
        door.get("/metrics").bearer(&door.viewer.text)
    });
    refused(&get().send(), 401);
}

#[test]
fn the_login_page_leads_nowhere_else_and_shows_no_token() {
    let door = Guarded::start("");
    let page = door
        .get("/login?next=%22%3E%3Cscript%3E")
        .with("Accept", "text/html")
        .send();
    assert_eq!(page.status, 200);
    assert!(page.body.contains("method=\"post\" action=\"/login\""));
    assert!(!page.body.contains("<script>"), "what was asked is escaped");
    for (next, place) in [
        ("%2Fservices%3Fq%3Da", "/services?q=a"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2F%09%2Fevil.example", "/"),
        ("%2F%0D%0ASet-Cookie%3A+a%3Db", "/"),
    ] {
        let answer = door.sign_in(&door.viewer.text, next);
        assert_eq!(answer.header("location"), Some(place), "{next}");
        assert_eq!(answer.head.matches("et-").count(), 1, "{}", answer.head);
    }
    let wrong = Web::form(door.to, "/login", "token=mrd_canary&next=/a");
    let answer = wrong.with("Accept", "text/html").send();
    assert_eq!(answer.status, 401);
    assert!(answer.body.contains("role=\"alert\"") && !answer.body.contains("mrd_canary"));
    assert!(answer.body.contains("value=\"/a\""));
    refused(&door.sign_in("mrd_canary", ""), 401);
    refused(&Web::form(door.to, "/login", "next=/").send(), 400);
    refused(&Web::form(door.to, "/login", "\u{1}%ff=%").send(), 400);
}

#[test]
fn only_names_of_ours_are_answered_to() {
    let door = Guarded::start(", hosts: [dash.example.com]");
    let port = door.to.port();
    let get = |host: &str| {
        let web = door.get("/metrics").bearer(&door.viewer.text);
        web.host(Some(host)).send()
    };
    for host in [
        door.to.to_string(),
        format!("localhost:{port}"),
        "localhost".to_owned(),
        "DASH.example.com".to_owned(),
        format!("dash.example.com.:{port}"),
    ] {
        assert_eq!(get(&host).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example:8053",
        "evil.dash.example.com",
        "192.0.2.1",
        "169.254.169.254",
    ] {
        refused(&get(host), 421);
    }
    for host in ["", "a b", "localhost:x", "[::1", "user@localhost"] {
        refused(&get(host), 400);
    }
    let bearer = || door.get("/metrics").bearer(&door.viewer.text);
    refused(&bearer().host(None).send(), 400);
    refused(&bearer().with("Host", "localhost").send(), 400);
    let absolute = Web::get(door.to, "http://evil.example/metrics");
    refused(&absolute.bearer(&door.viewer.text).send(), 400);
    // Those who watch the node may call it anything.
    assert_eq!(
        door.get("/livez").host(Some("evil.example")).send().status,
        200
    );
    // Another site's page, by token and by stream.
    let evil = "https://evil.example";
    let post = Web::new(door.to, "POST", "/metrics").bearer(&door.operator.text);
    refused(&post.clone().with("Origin", evil).send(), 403);
    refused(&post.send(), 405);
    let stream = bearer().with("Accept", "text/event-stream");
    refused(&stream.clone().with("Origin", evil).send(), 403);
    assert_eq!(stream.send().status, 200);
}

#[test]
fn whoever_comes_through_a_proxy_is_not_on_this_machine() {
    let to = SocketAddr::new(loopback(), 8053);
    let admin = format!("listen: [\"{to}\"], hosts: [dash.example.com]");
    let node = Node::start_with_admin(plain, &admin, REST, |_| ());
    assert_eq!(Web::get(to, "/metrics").send().status, 200);
    for name in ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"] {
        refused(
            &Web::get(to, "/metrics").with(name, "192.0.2.1").send(),
            401,
        );
    }
    refused(
        &Web::get(to, "/metrics")
            .host(Some("dash.example.com"))
            .send(),
        401,
    );
    refused(&Web::get(to, "/metrics").bearer("mrd_wrong").send(), 401);
    assert_eq!(
        Web::get(node.http(), "/metrics")
            .host(Some("any"))
            .send()
            .status,
        200
    );
    refused(&Web::get(node.http(), "/login").send(), 404);
}

#[test]
fn every_answer_has_the_headers_that_browsers_obey() {
    let door = Guarded::start("");
    let evil = door.get("/metrics").host(Some("evil.example"));
    for web in [
        door.get("/metrics").bearer(&door.viewer.text),
        door.get("/metrics"),
        door.get("/metrics").with("Accept", "text/html"),
        door.get("/nowhere"),
        door.get("/login"),
        door.get("/livez"),
        Web::new(door.to, "DELETE", "/metrics"),
        Web::get(door.node.http(), "/metrics"),
        Web::get(door.node.http(), "/nowhere"),
        evil,
    ] {
        let answer = web.send();
        for (name, part) in [
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self';",
            ),
            ("content-security-policy", "frame-ancestors 'none'"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("permissions-policy", "camera=()"),
            ("cache-control", "no-store"),
        ] {
            let value = answer.header(name).unwrap_or_default();
            assert!(value.contains(part), "{name}: {answer:?}");
        }
        assert_eq!(answer.header("strict-transport-security"), None);
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(answer.header("server"), None);
    }
}

#[test]
fn other_verbs_and_other_paths_find_nothing() {
    let door = Guarded::start("");
    for verb in ["PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = Web::new(door.to, verb, "/metrics")
            .bearer(&door.operator.text)
            .send();
        refused(&answer, 405);
        assert_eq!(answer.header("allow"), Some("GET,HEAD"), "{verb}");
    }
    let head = Web::new(door.to, "HEAD", "/metrics")
        .bearer(&door.viewer.text)
        .send();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    refused(&door.get("/logout").send(), 405);
    for path in [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/metrics/..%5c..%5cetc",
        "/metrics%00",
        "//etc/passwd",
        "/login/../metrics",
        "/.git/config",
        "/debug/pprof",
        "/state/audit.jsonl",
        "/METRICS",
        "/metrics/",
    ] {
        let answer = door.get(path).bearer(&door.operator.text).send();
        refused(&answer, 404);
        assert!(!answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn what_is_too_large_is_not_taken() {
    let door = Guarded::start("");
    let get = || door.get("/metrics").bearer(&door.viewer.text);
    let one = get().with("X-Large", &"x".repeat(17 << 10)).send();
    let many = (0..70)
        .fold(get(), |web, at| web.with(&format!("X-{at}"), "x"))
        .send();
    let long = door.get(&format!("/{}", "x".repeat(17 << 10))).send();
    assert_eq!((one.status, many.status), (431, 431));
    assert!(matches!(long.status, 414 | 431), "{long:?}");
    let large = "token=".to_owned() + &"x".repeat(64 << 10);
    let answer = Web::form(door.to, "/login", &large).try_send();
    refused(&answer.expect("an answer before the body"), 413);
    // A body without an announced length is cut when it is too large.
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000)).repeat(17);
    let text = format!(
        "POST /login HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{chunk}0\r\n\r\n",
        door.to
    );
    let mut stream = door.get("/").connect();
    let _ = stream.write_all(text.as_bytes());
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert_eq!(get().send().status, 200);
}

#[test]
fn who_sends_slowly_is_cut_and_keeps_nobody_out() {
    let door = Guarded::start("");
    // Some only begin their headers, some their bodies.
    let mut heads: Vec<_> = (0..20).map(|_| door.get("/").connect()).collect();
    for stream in &mut heads {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    }
    let begun = Instant::now();
    let form = Web::form(door.to, "/login", "")
        .with("Expect-More", "yes")
        .text();
    let form = form.replace("Content-Length: 0", "Content-Length: 100");
    let mut body = door.get("/").connect();
    body.write_all(form.as_bytes()).unwrap();
    body.write_all(b"token=").unwrap();
    assert_eq!(
        door.get("/metrics").bearer(&door.viewer.text).send().status,
        200
    );
    for mut stream in heads {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(9), "{took:?}");
    }
    let mut answer = String::new();
    body.read_to_string(&mut answer).unwrap();
    let took = begun.elapsed();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!((9..15).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn bearer_tokens_of_a_provider_hold_only_when_all_of_them_is_right() {
    let (provider, other) = (
        Provider::new("https://login.example"),
        Provider::new("https://login.example"),
    );
    let to = SocketAddr::new(loopback(), 8053);
    let admin = format!(
        "listen: [\"{to}\"], anonymous: none, oidc: {{issuer: \"https://login.example\", audience: meridian, jwksFile: jwks.json, viewer: [dev], operator: [sre]}}"
    );
    let _node = Node::start_with_admin(plain, &admin, REST, |folder| {
        std::fs::write(folder.join("jwks.json"), provider.set()).unwrap();
    });
    let get = |token: &str| Web::get(to, "/metrics").bearer(token).send();
    let right = provider.right(&provider.claims("dev"));
    assert_eq!(get(&right).status, 200);
    refused(&get(&provider.right(&provider.claims("nobody"))), 403);
    let changed = |key: &str, value: Value| {
        let mut claims = provider.claims("sre");
        claims[key] = value;
        provider.right(&claims)
    };
    let claims = provider.claims("sre");
    let header = |alg: &str| json!({"alg": alg, "kid": "one"});
    let (start, signature) = right.rsplit_once('.').unwrap();
    let (_, payload) = provider
        .right(&claims)
        .rsplit_once('.')
        .map(|(start, end)| (end.to_owned(), start.to_owned()))
        .unwrap();
    for forged in [
        changed("exp", json!(1)),
        changed("nbf", json!(1e12)),
        changed("iss", json!("https://evil.example")),
        changed("aud", json!("other")),
        provider.token(&header("none"), &claims),
        provider.token(&header("HS256"), &claims),
        other.right(&claims),
        format!("{start}."),
        format!("{payload}.{signature}"),
    ] {
        refused(&get(&forged), 401);
    }
    let form = format!("token={}", provider.right(&claims));
    let cookie = Web::form(to, "/login", &form).send().cookie();
    assert_eq!(
        Web::get(to, "/metrics")
            .with("Cookie", &cookie)
            .send()
            .status,
        200
    );
}

#[test]
fn refused_changes_and_logins_are_in_the_audit_log() {
    let door = Guarded::start("");
    refused(
        &Web::new(door.to, "POST", "/logout")
            .with("Origin", "http://evil.example")
            .send(),
        403,
    );
    refused(&door.sign_in("mrd_wrong", ""), 401);
    let from = loopback();
    let body = format!("token={}", door.operator.text);
    let answer = Web::form(door.to, "/login", &body).from(from).send();
    let path = door.node.folder().join("state/audit.jsonl");
    let entries: Vec<Value> = wait_for("three entries", REVOKED, || {
        let text = std::fs::read_to_string(&path).ok()?;
        let read = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let read: Vec<Value> = read.collect();
        (read.len() >= 3).then_some(read)
    });
    assert_eq!(entries[0]["target"], "POST /logout");
    assert_eq!(
        (&entries[0]["outcome"], &entries[0]["actor"]),
        (&json!("refused"), &json!("unknown"))
    );
    assert_eq!(entries[1]["target"], "POST /login");
    let login = &entries[2];
    assert_eq!(
        (&login["action"], &login["actor"], &login["role"]),
        (&json!("login"), &json!("sre"), &json!("operator"))
    );
    assert_eq!(login["from"], from.to_string());
    assert_eq!(login["request"], answer.header("x-request-id").unwrap());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}
