//! The page in a real browser against a real `serve`, with a microphone that says "Enter plan mode."

use std::path::Path;
use std::time::Duration;

use tokio::process::Command;

use voxgate::media::wav;

use crate::live::{Gateway, sentence};

/// A sentence after 3.5 s, in a room that hums a little for two minutes: nothing but zeros would be a microphone that is off.
fn room(text: &str) -> Vec<i16> {
    let mut sound = vec![0i16; 48_000 * 7 / 2];
    sound.extend(sentence(text, 48_000));
    sound.resize(48_000 * 120, 0);
    let mut state = 1u32;
    for sample in &mut sound {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *sample = sample.saturating_add((state >> 28) as i16 - 8);
    }
    sound
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_hears_shows_approves_and_allows() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    assert!(tests.join("node_modules/playwright-core").is_dir(), "the page's tests are not set up; run: cd tests/browser && npm ci (and apt-get install chromium)");
    let folder = tempfile::tempdir().unwrap();
    let microphone = folder.path().join("microphone.wav");
    std::fs::write(&microphone, wav::write(48_000, &room("Enter plan mode."))).unwrap();
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
