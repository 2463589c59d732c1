//! The page in a real browser against a real `serve`, with a microphone that says "Enter plan mode."

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use crate::live::{Gateway, sentence_file};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_hears_shows_approves_and_allows() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    assert!(tests.join("node_modules/playwright-core").is_dir(), "the page's tests are not set up; run: cd tests/browser && npm ci (and apt-get install chromium)");
    let folder = tempfile::tempdir().unwrap();
    let microphone = sentence_file(folder.path().join("microphone.wav"), 3_500, "Enter plan mode.", 48_000);
    let shots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let gateway = Gateway::serve("").await;
    let test = Command::new("node").args(["--test", "--test-reporter=spec", "live.test.mjs"]).current_dir(&tests)
        .env("VOXGATE_PAGE_URL", &gateway.page).env("VOXGATE_FAKE_MIC", &microphone).env("VOXGATE_SHOTS", &shots).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_secs(400), test).await.expect("the browser ends").expect("node (apt-get install nodejs)");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}\npictures: {}", shots.display());
    assert!(output.status.success(), "{said}\n{}", gateway.said());
    assert_eq!(crate::sdk_conversation::notes(&gateway), ["buy eggs"]);
    let (status, _) = gateway.end("-TERM").await;
    assert!(status.success());
}
