//! Speech over the voice stops it at once, and the history holds what was heard and no more.

use crate::speech::{Judge, RATE_HZ, Speaker, compared, quiet};
use crate::talking::{Event, Run, talk};

const SPEAKER: Speaker = Speaker::FliteSlt;

/// The question, then "Be quiet." with its first sound at this time, if any. (The "s" of "stop" is no voice: the ear counts from
/// its vowel on, a quarter of a second later.)
fn microphone(stop_at_ms: Option<u64>) -> Vec<i16> {
    let mut mic = [quiet(1_000), SPEAKER.say("What can I say?")].concat();
    let Some(at) = stop_at_ms else { return [mic, quiet(3_000)].concat() };
    let stop = SPEAKER.say("Be quiet.");
    let first = stop.iter().position(|s| s.unsigned_abs() > 600).expect("it sounds");
    mic.resize((at * u64::from(RATE_HZ) / 1000) as usize - first, 0);
    [mic, stop, quiet(3_000)].concat()
}

fn help(run: &Run) -> &Event { run.speeches().find(|e| e.text("text").starts_with("You can say")).unwrap_or_else(|| panic!("{}", run.told())) }

/// The words of the help that the history holds.
fn kept(run: &Run) -> Vec<String> {
    let line = run.events.iter().find(|e| e.kind == "transcript" && e.is("role", "assistant") && e.text("text").starts_with("You"));
    line.map(|e| compared(e.text("text"))).unwrap_or_default()
}

#[test]
fn a_barge_in_ends_the_sound_at_once_and_the_history_is_cut_within_a_word() {
    let judge = Judge::new();
    let whole = talk(&microphone(None), |_| {});
    let (began, total) = (Run::began_ms(help(&whole)), help(&whole).number("total_ms"));
    assert_eq!(help(&whole).number("heard_ms"), total, "the whole of it was heard");
    let text = compared(help(&whole).text("text"));
    // 400 ms after the voice began, and in the middle of it. After 60 ms of voice it holds its breath, and words end it there.
    for cut_ms in [400, 2_200] {
        let onset = began + cut_ms - 60;
        let run = talk(&microphone(Some(onset)), |_| {});
        let speech = help(&run);
        let heard_ms = speech.number("heard_ms");
        assert!(heard_ms < total && heard_ms.abs_diff(cut_ms) <= 100, "{heard_ms} ms were heard where {cut_ms} were meant\n{}", run.told());
        // What it answers to the interruption comes much later.
        let sounded = run.played(began, speech.at_ms + 400).iter().rposition(|s| *s != 0).expect("it sounded") as u64;
        let silent_from = began + sounded * 1000 / u64::from(RATE_HZ);
        assert!(silent_from <= onset + 300, "the voice sounded for {} ms after the onset", silent_from - onset);
        assert_eq!(silent_from.saturating_sub(began + heard_ms) / 30, 0, "heard {heard_ms} ms, but it sounded to {silent_from} ms (began at {began})");
        let kept = kept(&run);
        assert!(text.starts_with(&kept), "{kept:?} is no beginning of {text:?}");
        // The truth in two ways: what another listener makes of the stretch that sounded, and what of the whole it would be by
        // length. The listener guesses at half a word, and under a second it has next to nothing to go by.
        let heard = compared(&judge.hears(run.played(began, began + heard_ms + 20), RATE_HZ)).len();
        let proportional = (text.len() as u64 * heard_ms) as f64 / total as f64;
        println!("cut at {heard_ms} of {total} ms: kept {kept:?}, the judge hears {heard} words, by length {proportional:.1}");
        assert!(kept.len().abs_diff(heard) <= 1 || cut_ms < 1_000 && (kept.len() as f64 - proportional).abs() <= 1.0, "kept {kept:?}, heard {heard} words, by length {proportional:.1}");
    }
}
