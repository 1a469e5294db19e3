//! A browser, driven by WebDriver (W3C) over HTTP.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::harness::packages::{CHROMEDRIVER, CHROMIUM, FONTS, need};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};

/// How long a page may take to come, or to become what is waited for.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// The member in which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys by their code points in WebDriver.
pub const ENTER: char = '\u{e007}';
pub const TAB: char = '\u{e004}';
pub const SPACE: char = ' ';

/// A running browser with one window.
pub struct Chrome {
    runtime: Runtime,
    client: Client,
    session: String,
    // Ended in this order: the session, the driver, the folder.
    _driver: Process,
    _folder: TempDir,
}

impl Chrome {
    /// Starts a browser; a window of 1280 by 900.
    pub fn start() -> Self {
        need(&[CHROMIUM, CHROMEDRIVER, FONTS]);
        // The client is for HTTPS too, and wants to know with what; an earlier test may have said so.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::new(loopback(), 0);
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .unwrap_or(address)
            .port();
        let mut command = Command::new(CHROMEDRIVER.0);
        command.arg(format!("--port={port}"));
        let mut driver = Process::start("chromedriver", folder.path(), &mut command);
        let base = format!("http://127.0.0.1:{port}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        // Nobody looks after connections between two commands: each has its own.
        let client = Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        wait_for("chromedriver", PATIENCE, || {
            driver.assert_running();
            let asked = client.get(format!("{base}/status")).send();
            let answer = runtime.block_on(async { asked.await?.json::<Value>().await });
            answer.ok()?["value"]["ready"].as_bool()?.then_some(())
        });
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "pageLoadStrategy": "normal",
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            "goog:chromeOptions": {"binary": CHROMIUM.0, "args": [
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
                "--lang=en-US", "--window-size=1280,900",
                format!("--user-data-dir={}", folder.path().join("profile").display()),
            ]},
        }}});
        let asked = client.post(format!("{base}/session")).json(&wanted).send();
        let answer: Value = runtime
            .block_on(async { asked.await?.json().await })
            .unwrap();
        let id = answer["value"]["sessionId"].as_str();
        let id = id.unwrap_or_else(|| panic!("no session: {answer}"));
        Self {
            session: format!("{base}/session/{id}"),
            runtime,
            client,
            _driver: driver,
            _folder: folder,
        }
    }

    /// Sends a command; `Err` is what the driver says.
    fn ask(&self, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let url = format!("{}{path}", self.session);
        let request = match body {
            Some(body) => self.client.post(url).json(body),
            None => self.client.get(url),
        };
        let answer: Result<Value, _> = self
            .runtime
            .block_on(async { request.timeout(PATIENCE * 2).send().await?.json().await });
        let mut answer = answer.map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    /// Sends a command that must succeed.
    fn must(&self, path: &str, body: &Value) -> Value {
        self.ask(path, Some(body))
            .unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.must("/url", &json!({ "url": url }));
    }

    /// Opens one more tab, in front of all others.
    pub fn new_tab(&self) {
        let made = self.must("/window/new", &json!({"type": "tab"}));
        self.must("/window", &json!({"handle": made["handle"]}));
    }

    /// Brings the tab opened first to the front.
    pub fn first_tab(&self) {
        let tabs = self.ask("/window/handles", None).unwrap();
        self.must("/window", &json!({"handle": tabs[0]}));
        self.cdp("Page.bringToFront", &json!({}));
    }

    /// Gives where the window is.
    pub fn url(&self) -> String {
        self.ask("/url", None).unwrap().as_str().unwrap().to_owned()
    }

    /// Gives the page as it is now.
    pub fn source(&self) -> String {
        let source = self.ask("/source", None).unwrap();
        source.as_str().unwrap().to_owned()
    }

    /// Runs a function body in the page.
    pub fn run(&self, script: &str) -> Value {
        self.must("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a function body that calls its last argument when it is done.
    pub fn run_async(&self, script: &str) -> Value {
        self.must("/execute/async", &json!({"script": script, "args": []}))
    }

    /// Speaks the DevTools protocol.
    pub fn cdp(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.must("/goog/cdp/execute", &body)
    }

    /// Waits until an expression of the page is true.
    pub fn wait(&self, what: &str) {
        let begun = Instant::now();
        let script = format!("return Boolean({what})");
        let body = json!({"script": script, "args": []});
        // A page that goes away while it is asked is asked again.
        while self.ask("/execute/sync", Some(&body)) != Ok(Value::Bool(true)) {
            assert!(
                begun.elapsed() < PATIENCE,
                "gave up waiting for {what} at {}:\n{}",
                self.url(),
                self.source()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Finds an element.
    fn find(&self, css: &str) -> String {
        let found = wait_for(css, PATIENCE, || {
            let body = json!({"using": "css selector", "value": css});
            self.ask("/element", Some(&body)).ok()
        });
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks on an element with the mouse.
    pub fn click(&self, css: &str) {
        self.click_at(css, &json!({"using": "css selector", "value": css}));
    }

    /// Clicks on the link, button, label or summary whose text begins so.
    pub fn click_text(&self, text: &str) {
        let path = format!(
            "//*[self::a or self::button or self::label or self::summary][starts-with(normalize-space(.), '{text}')]"
        );
        self.click_at(text, &json!({"using": "xpath", "value": path}));
    }

    /// Finds an element and clicks on it. One that the page replaced in between, as it is live, is found again.
    fn click_at(&self, what: &str, place: &Value) {
        wait_for(what, PATIENCE, || {
            let found = self.ask("/element", Some(place)).ok()?;
            let element = found[ELEMENT].as_str().unwrap();
            let clicked = self.ask(&format!("/element/{element}/click"), Some(&json!({})));
            match clicked {
                Err(error) if error.starts_with("stale element reference") => None,
                Err(error) => panic!("{what}: {error}"),
                Ok(_) => Some(()),
            }
        });
    }

    /// Writes into a field.
    pub fn fill(&self, css: &str, text: &str) {
        let element = self.find(css);
        let body = json!({ "text": text });
        self.must(&format!("/element/{element}/value"), &body);
    }

    /// Presses keys, whatever has the focus.
    pub fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})))
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]});
        self.must("/actions", &actions);
    }

    /// Presses Tab until the focus is on an element whose text begins so; as somebody without a mouse does.
    pub fn tab_to(&self, text: &str) {
        for _ in 0..150 {
            self.press(&TAB.to_string());
            let script = "const e = document.activeElement; return (e.labels?.[0]?.textContent || e.getAttribute('aria-label') || e.textContent || e.name || '').trim();";
            let focused = self.run(script);
            if focused
                .as_str()
                .is_some_and(|focused| focused.starts_with(text))
            {
                let outlined = "const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' || document.activeElement.closest('svg') !== null;";
                assert_eq!(
                    self.run(outlined),
                    true,
                    "the focus on `{text}` is not seen"
                );
                return;
            }
        }
        panic!("no Tab reaches `{text}` at {}", self.url());
    }

    /// Sets the size of the window's inside, and the colors.
    pub fn dress(&self, width: u32, colors: &str) {
        let height = if width < 500 { 780 } else { 1080 };
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", &size);
        // Bars take room on the screen and none in a picture.
        self.cdp("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": colors}]});
        self.cdp("Emulation.setEmulatedMedia", &features);
    }

    /// Switches scripts of pages off.
    pub fn without_scripts(&self) {
        let off = json!({"value": true});
        self.cdp("Emulation.setScriptExecutionDisabled", &off);
    }

    /// Keeps a picture of the whole page.
    pub fn picture(&self, name: &str) {
        let size = self.cdp("Page.getLayoutMetrics", &json!({}));
        let (width, height) = (
            &size["cssContentSize"]["width"],
            &size["cssContentSize"]["height"],
        );
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let taken = self.cdp(
            "Page.captureScreenshot",
            &json!({"format": "png", "captureBeyondViewport": true, "clip": clip}),
        );
        let folder = screenshots();
        fs::create_dir_all(&folder).unwrap();
        let octets = BASE64.decode(taken["data"].as_str().unwrap().as_bytes());
        fs::write(folder.join(format!("{name}.png")), octets.unwrap()).unwrap();
    }

    /// Lists the URLs asked for since the last call.
    pub fn requests(&self) -> Vec<String> {
        let entries = self.must("/se/log", &json!({"type": "performance"}));
        let messages = entries.as_array().unwrap().iter();
        messages
            .filter_map(|entry| serde_json::from_str::<Value>(entry["message"].as_str()?).ok())
            .filter(|message| message["message"]["method"] == "Network.requestWillBeSent")
            .filter_map(|message| {
                let url = &message["message"]["params"]["request"]["url"];
                url.as_str().map(str::to_owned)
            })
            .collect()
    }

    /// Tells of the last requests as the browser saw them: what went out, what came, what failed, and when.
    fn story(&self) -> Vec<String> {
        let entries = self.ask("/se/log", Some(&json!({"type": "performance"})));
        let entries = entries.unwrap_or_default();
        let told = entries
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let message = serde_json::from_str::<Value>(entry["message"].as_str()?).ok()?;
                let message = &message["message"];
                let method = message["method"].as_str()?.strip_prefix("Network.")?;
                let part = &message["params"];
                let url = [&part["request"]["url"], &part["response"]["url"]]
                    .into_iter()
                    .find_map(Value::as_str)
                    .unwrap_or_default();
                let rest = [
                    &part["response"]["status"],
                    &part["errorText"],
                    &part["canceled"],
                    &part["response"]["connectionId"],
                ];
                let rest = rest.iter().filter(|value| !value.is_null());
                let rest: Vec<String> = rest.map(ToString::to_string).collect();
                Some(format!(
                    "{} {method} {} {url} {}",
                    part["timestamp"],
                    part["requestId"],
                    rest.join(" ")
                ))
            });
        let told: Vec<String> = told.filter(|line| !line.contains("ExtraInfo")).collect();
        told[told.len().saturating_sub(60)..].to_vec()
    }

    /// Lists what the console complained of since the last call: faults of scripts, and what the policy blocked.
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.must("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().unwrap().iter();
        entries
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING")
            .map(|entry| entry["message"].to_string())
            .collect()
    }
}

impl Drop for Chrome {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.story() {
                println!("{line}");
            }
        }
        // Ends the browser; the driver is ended after it.
        let end = self.client.delete(&self.session).timeout(PATIENCE);
        let _ = self.runtime.block_on(async { end.send().await });
    }
}

/// Where pictures are kept.
fn screenshots() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots")
}
