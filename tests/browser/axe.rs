//! axe-core looks for what keeps people out. The npm package is fetched once and kept in the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::chrome::Chrome;
use crate::harness::packages::{NPM, need};

/// The package, pinned.
const PACKAGE: &str = "axe-core@4.14.1";

/// The script.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE);
    let script = folder.join("package/axe.min.js");
    if !script.exists() {
        need(&[NPM]);
        fs::create_dir_all(&folder).unwrap();
        let run = |program: &str, args: &[&str]| {
            let output = Command::new(program)
                .args(args)
                .current_dir(&folder)
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {args:?}: {error}");
        };
        run(NPM.0, &["pack", "--silent", PACKAGE]);
        run("tar", &["xzf", "axe-core-4.14.1.tgz", "package/axe.min.js"]);
    }
    fs::read_to_string(script).unwrap()
});

/// Lists the serious and critical faults of a page: of WCAG 2.2 A or AA, or of good practice.
pub fn faults(chrome: &Chrome, what: &str) -> Vec<String> {
    chrome.run(&SCRIPT);
    let found = chrome.run_async(
        "const done = arguments[arguments.length - 1];
         axe.run(document, {resultTypes: ['violations']}).then(
           (result) => done(result.violations.map((fault) => ({
             id: fault.id, impact: fault.impact, help: fault.help,
             nodes: fault.nodes.slice(0, 5).map((node) => node.html.slice(0, 200) + ' | ' + (node.any[0]?.message || node.all[0]?.message || '')),
           }))),
           (error) => done([{id: 'axe', impact: 'critical', help: String(error), nodes: []}]));",
    );
    let found = found.as_array().unwrap().iter();
    found
        .filter(|fault| fault["impact"] == "serious" || fault["impact"] == "critical")
        .map(|fault| format!("{what}: {fault}"))
        .collect()
}
