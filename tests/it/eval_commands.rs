//! Spoken commands in three voices, clean and in babble, through `voxgate eval commands --quick`: nothing that denies or only comes
//! near is taken for consent, and few sentences are missed. The command itself holds the bounds.

use std::process::Command;

#[test]
fn spoken_denials_and_near_misses_loosen_nothing_and_commands_are_heard() {
    let out = Command::new(env!("CARGO_BIN_EXE_voxgate")).args(["eval", "commands", "--quick", "--wrong"]).output().unwrap();
    let (told, error) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{error}\n{told}");
    assert!(told.contains("Denial: 15 trials, 0 loosened, 0 taken for consent"), "{told}");
}

#[test]
fn voices_kept_for_independent_checks_are_refused() {
    for name in ["am_fenrir", "am_puck", "af_bella", "bf_emma", "bm_george"] {
        let out = Command::new(env!("CARGO_BIN_EXE_voxgate")).args(["eval", "commands", "--voices", name]).output().unwrap();
        assert!(out.status.code() == Some(2) && String::from_utf8_lossy(&out.stderr).contains("independent"), "{name}: {out:?}");
    }
}
