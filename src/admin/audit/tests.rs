//! The audit log in memory, on disk, and on a disk that takes nothing.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::*;

fn act(action: &str) -> Act<'_> {
    Act {
        action,
        target: "cluster/a",
        reason: "because",
        before: None,
        after: Some(json!({"drained": true})),
        outcome: Outcome::Done,
    }
}

fn numbers(entries: &[Arc<Entry>]) -> Vec<u64> {
    entries.iter().map(|entry| entry.id).collect()
}

/// Writes what waits and gives up at the first failure.
async fn settle(audit: &Audit) -> std::io::Result<()> {
    let file = audit.inner.file.clone().unwrap();
    while audit.write(&file).await? {}
    Ok(())
}

#[tokio::test]
async fn entries_are_lines_of_json_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(Some(folder.path()));
    let by = Actor {
        name: "ci",
        role: "operator",
        from: Some("192.0.2.7".parse().unwrap()),
        request: "r-1",
    };
    audit.record(by, act("drain\n\u{1b}[31m"));
    audit.record(by, act(&"x".repeat(5000)));
    settle(&audit).await.unwrap();
    let path = folder.path().join("audit.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(!text.contains('\u{1b}') && lines[1].len() < 1000);
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(first["actor"], "ci");
    assert_eq!(first["from"], "192.0.2.7");
    assert_eq!(first["after"], json!({"drained": true}));
    assert_eq!(
        (&first["outcome"], &first["request"]),
        (&json!("done"), &json!("r-1"))
    );
    let time = first["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A crash left half a line.
    std::fs::write(&path, format!("{text}{{\"id\":9")).unwrap();
    let again = Audit::open(Some(folder.path()));
    assert_eq!(numbers(&again.recent(10, None)), [2, 1]);
    again.record(by, act("undrain"));
    settle(&again).await.unwrap();
    let third = Audit::open(Some(folder.path()));
    assert_eq!(numbers(&third.recent(10, None)), [3, 2, 1]);
    assert_eq!(numbers(&third.recent(1, Some(3))), [2]);
}

#[tokio::test]
async fn a_disk_that_takes_nothing_keeps_entries_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let audit = Audit::open(Some(&gone));
    for _ in 0..WAITING + 3 {
        audit.record(NODE, act("drain"));
    }
    assert!(settle(&audit).await.is_err());
    assert_eq!(audit.backlog(), (WAITING, 3));
    std::fs::create_dir(&gone).unwrap();
    settle(&audit).await.unwrap();
    assert_eq!(audit.backlog(), (0, 3));
    let text = std::fs::read_to_string(gone.join("audit.jsonl")).unwrap();
    assert_eq!(text.lines().count(), WAITING + 1);
    assert!(text.contains("3 entries were lost"));
    assert_eq!(audit.recent(usize::MAX, None).len(), RECENT);
}

#[tokio::test(start_paused = true)]
async fn the_task_writes_until_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(Some(folder.path()));
    let token = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(audit.clone().run(token.clone()));
    audit.record(NODE, act("drain"));
    while audit.backlog().0 > 0 {
        tokio::task::yield_now().await;
    }
    audit.record(NODE, act("undrain"));
    token.cancel();
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(Audit::open(Some(folder.path())).recent(9, None).len(), 2);
}

#[test]
fn without_a_folder_there_is_memory() {
    let audit = Audit::open(None);
    for _ in 0..RECENT + 1 {
        audit.record(NODE, act("drain"));
    }
    assert_eq!(audit.recent(usize::MAX, None).len(), RECENT);
    assert_eq!(audit.backlog(), (0, 0));
}

#[test]
fn files_rotate_and_five_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = AuditFile::rotated_at(folder.path(), 10);
    for number in 0..8 {
        file.append(format!("{{\"number\":{number}}}\n").as_bytes())
            .unwrap();
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kept = [1, 2, 3, 4, 5].map(|number| format!("audit.jsonl.{number}"));
    assert_eq!(names[0], "audit.jsonl");
    assert_eq!(names[1..], kept);
    let newest = std::fs::read_to_string(folder.path().join("audit.jsonl.1")).unwrap();
    assert_eq!(newest, "{\"number\":6}\n");
}

#[test]
fn large_values_become_texts() {
    let large = json!({"list": vec!["ä"; 5000]});
    let Value::String(text) = bounded_value(large) else {
        panic!("no text")
    };
    assert!(text.len() <= MAX_VALUE + 4);
    assert_eq!(bounded_value(json!([1])), json!([1]));
}
