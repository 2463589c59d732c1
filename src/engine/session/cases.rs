//! Field cases of turn taking in virtual time: what broke for users of other voice systems, each as a test that names its case.

use std::collections::VecDeque;

use super::super::event::{EventKind, Role};
use super::super::authority::{OperatorDoor, Surface};
use super::super::grammar::phrase_table_of;
use super::super::heard::{Heard, PhraseScore};
use super::super::id::Ms;
use super::super::input::{Count, Input, Ticket};
use super::super::language::Language;
use super::super::intent::{Moment, decide_text};
use super::super::turn::{EarEvent, EarSettings, Frame, Listener};
use super::tests::World;
use super::{EngineConfig, QUIET_AFTER_MS};

/// A long answer of the gateway is being said; 1.5 s of it were heard.
fn speaking(recognise_ms: u64) -> World {
    let mut w = World::new();
    w.settle();
    w.say_now("What can I say?");
    assert!(w.speaking.is_some());
    w.silence(1_500);
    w.recognise_ms = recognise_ms;
    w.sounded.clear();
    w
}

impl World {
    /// Voice for so long; these are its words.
    fn voice(&mut self, ms: u64, text: &str) {
        self.script = VecDeque::from([Heard::text_only(text)]);
        (0..ms / 20).for_each(|_| self.frame(true));
    }

    fn sounds(&self) -> bool { self.speaking.as_ref().is_some_and(|p| !p.held) }

    fn turns(&self) -> usize { self.told.iter().filter(|t| *t == "turn").count() }

    fn counted(&self, what: &Count) -> usize { self.counts.iter().filter(|c| *c == what).count() }

    fn last_speech(&self) -> (u64, u64) {
        let speech = |e: &super::super::event::Event| if let EventKind::Speech { heard_ms, total_ms, .. } = &e.kind { Some((*heard_ms, *total_ms)) } else { None };
        self.events.iter().rev().find_map(speech).unwrap_or_default()
    }

    fn user_lines(&self) -> Vec<String> { self.engine.snapshot().transcript.iter().filter(|l| l.role == Role::User && l.for_agent).map(|l| l.text.clone()).collect() }
}

#[test]
fn field_case_1_a_cough_costs_a_pause_and_never_the_answer() {
    // While the reply is on its way.
    let mut w = World::new();
    w.settle();
    (w.agent_ms, w.recognise_ms) = (400, 350);
    w.voice(900, "Tell me about the weather.");
    w.silence(520);
    assert_eq!(w.turns(), 1, "the reply is in flight");
    w.silence(40);
    w.voice(160, "");
    let cough = w.now;
    while !w.sounds() && w.now < cough + 2_500 { w.frame(false) }
    assert!(w.sounds(), "the reply came");
    w.settle();
    assert!(w.spoken().ends_with("I do not know that.") && w.turns() == 1, "{}", w.spoken());
    assert_eq!(w.last_speech().0, w.last_speech().1);
    // While it is heard; with a recogniser that answers, and with one that never does.
    for recognise_ms in [350, 600_000] {
        let mut w = speaking(recognise_ms);
        let before = w.speaking.as_ref().map_or(0, |p| p.heard);
        w.voice(160, "[cough]");
        assert!(!w.sounds(), "it holds its breath");
        let cough = w.now;
        while !w.sounds() && w.now < cough + 2_500 { w.frame(false) }
        assert!(w.sounds(), "{recognise_ms}: it came back within 2.5 s");
        assert!(w.speaking.as_ref().is_some_and(|p| p.heard <= before + 160), "where it was");
        w.recognise_ms = 0;
        w.script.clear();
        w.silence(30_000);
        assert_eq!(w.last_speech().0, w.last_speech().1, "{recognise_ms}: all of it was heard");
        assert_eq!((w.counted(&Count::Duck), w.counted(&Count::Resume), w.counted(&Count::BargeIn)), (1, 1, 0));
    }
}

#[test]
fn field_case_2_backchannels_let_it_go_on_and_words_stop_it() {
    for text in ["Mm-hmm.", "Okay.", "Right.", "Uh-huh.", "Yeah.", "I see."] {
        let mut w = speaking(300);
        let lines = w.user_lines();
        let onset = w.now;
        w.voice(300, text);
        while !w.sounds() && w.now < onset + 2_500 { w.frame(false) }
        assert!(w.sounds() && w.now <= onset + 300 + 160 + 320, "{text}: it came back after {} ms", w.now - onset);
        w.silence(30_000);
        assert_eq!((w.last_speech().0, w.turns(), w.user_lines()), (w.last_speech().1, 0, lines), "{text}");
        assert!(!w.told[1..].contains(&"started".to_string()) || w.told.iter().filter(|t| *t == "started").count() == 1, "{text}: a leg is told nothing: {:?}", w.told);
    }
    for text in ["Stop.", "Wait.", "No.", "What about tomorrow?"] {
        let mut w = speaking(300);
        let onset = w.now;
        w.voice(400, text);
        w.silence(500);
        let silent = w.sounded.first().copied();
        assert!(silent.is_some_and(|(at, on)| !on && at <= onset + 200), "{text}: {:?} of {onset}", w.sounded);
        let (heard, total) = w.last_speech();
        assert!(heard < total && w.counted(&Count::BargeIn) == 1, "{text}: it was cut");
        let decided = w.events.iter().rev().find(|e| matches!(e.kind, EventKind::Speech { .. })).map_or(0, |e| e.at_ms - 1_000_000);
        assert!(decided <= onset + 660, "{text}: words decided {} ms after the onset", decided - onset);
        assert!(!w.sounded[1..].iter().any(|s| s.1 && s.0 < decided), "{text}: it did not come back in between");
    }
    for text in ["No.", "Yes."] {
        let mut w = World::new();
        w.settle();
        w.say_now(text);
        assert_eq!((w.turns(), w.user_lines()), (1, vec![text.to_string()]), "said in silence it is a turn");
    }
}

#[test]
fn what_cannot_hold_its_breath_is_cut_by_words_or_by_voice_that_insists_and_said_again_when_that_was_nothing() {
    use super::super::input::LegFacts;
    let socket = |text: &str, ms: u64| {
        let mut w = World::new();
        w.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: false, remote: false }));
        w.settle();
        w.say_now("What can I say?");
        w.silence(1_500);
        w.recognise_ms = 250;
        w.told.clear();
        w.voice(ms, text);
        let told = w.told.contains(&"started".to_string());
        w.silence(900);
        (w, told)
    };
    for (text, ms) in [("Okay.", 300), ("", 200), ("Mm-hmm.", 320)] {
        let (w, _) = socket(text, ms);
        assert!(w.sounds() && w.told.is_empty(), "{text}: {:?}", w.told);
    }
    let (w, told) = socket("Tell me more about that.", 700);
    assert!(told && w.last_speech().0 < w.last_speech().1);
    assert_eq!(w.told.iter().filter(|t| *t == "stopped").count(), 1);
    // A long noise: it was cut, the client has thrown the rest away, and it is said again.
    let (mut w, told) = socket("", 700);
    assert!(told && w.counted(&Count::BargeIn) == 1 && w.sounds(), "{:?}", w.told);
    w.silence(30_000);
    assert!(w.spoken().ends_with("For anything else, just ask.") && w.last_speech().0 == w.last_speech().1, "{}", w.spoken());
}

/// Thirty utterances with a pause of 0.4 to 1.5 s in them, and thirty without. The first half's words, the whole's, and what a
/// judge of sound makes of the half.
const PAUSED: [(&str, &str, f32); 6] = [
    ("Add milk and", "Add milk and eggs to my notes.", 0.05), ("I would like to", "I would like to go home.", 0.1), ("What is in", "What is in my notes?", 0.1), ("Tell me about the weather", "Tell me about the weather in the north.", 0.5),
    ("Remind me", "Remind me to call my mother.", 0.3), ("My number is five five", "My number is five five two one.", 0.15),
];
const COMPLETE: [&str; 6] = ["What's in my notes?", "Enter plan mode.", "Add milk to my notes.", "What mode are you in?", "Tell me a story.", "Read me the plan."];

/// Share of paused utterances that were cut in two, and the delays of all ends, in a listener with these settings.
fn cut_offs(settings: EarSettings, judged: bool) -> (f64, Vec<u64>) {
    let (mut cut, mut delays) = (0, Vec::new());
    for n in 0..30u64 {
        let (half, whole, p) = PAUSED[n as usize % PAUSED.len()];
        let pause = 400 + n * 38;
        let (times, delay) = listen(settings, &[(900, pause, half, judged.then_some(p)), (800, 3_000, whole, judged.then_some(0.95))]);
        cut += usize::from(times > 1);
        delays.push(delay);
        let (_, delay) = listen(settings, &[(1_000, 3_000, COMPLETE[n as usize % COMPLETE.len()], judged.then_some(0.95))]);
        delays.push(delay);
    }
    delays.sort_unstable();
    (cut as f64 / 30.0, delays)
}

/// How often it closed, and how long after the last voice it did for the last time. Recognition takes 300 ms.
fn listen(settings: EarSettings, parts: &[(u64, u64, &str, Option<f32>)]) -> (usize, u64) {
    let mut listener = Listener::new(settings, 1);
    let (mut now, mut times, mut delay) = (0, 0, 0);
    let mut due: Vec<(Ms, super::UtteranceId, u64, &str)> = Vec::new();
    for (voice, quiet, text, p) in parts {
        for n in 0..(voice + quiet) / 20 {
            now += 20;
            let frame = if n < voice / 20 { Frame { probability: 0.9, level_dbfs: -20.0 - (n % 5) as f32 * 4.0 } } else { Frame { probability: 0.0, level_dbfs: -65.0 } };
            for event in listener.frame(now, frame, false) {
                match event {
                    EarEvent::Look { utterance, to_ms, .. } => {
                        if let Some(p) = p { listener.judged(utterance, to_ms, *p) }
                        due.push((now + 300, utterance, to_ms, text));
                    }
                    EarEvent::Void { to_ms, .. } => due.retain(|d| d.2 != to_ms),
                    _ => {}
                }
            }
            due.retain(|(at, utterance, to_ms, text)| { if *at <= now { listener.heard(*utterance, *to_ms, Heard::text_only(*text)); } *at > now });
            if let Some(closed) = listener.close(|h| decide_text(&h.text, &Moment::default())) {
                (times, delay) = (times + 1, now - closed.utterance.last_at);
            }
        }
    }
    (times, delay)
}

#[test]
fn field_case_5_a_thinking_pause_is_not_an_end() {
    for silence_ms in [300, 600] {
        let settings = EarSettings { silence_ms, ..EarSettings::default() };
        let plain = EarSettings { unfinished_silence_ms: silence_ms, complete_silence_ms: silence_ms, command_silence_ms: silence_ms, ..settings };
        let (alone, slow) = cut_offs(plain, false);
        let (cut, delays) = cut_offs(settings, true);
        let median = |d: &[u64]| d[d.len() / 2];
        println!("{silence_ms} ms: {cut:.2} cut in two, median delay {} ms; by silence alone {alone:.2}, {} ms", median(&delays), median(&slow));
        assert!(cut < alone && cut < 0.5 && median(&delays) <= median(&slow).max(500), "{silence_ms}: {cut} of {alone}, {}", median(&delays));
    }
}

#[test]
fn a_second_half_that_comes_after_the_end_joins_the_turn() {
    let mut w = World::new();
    w.settle();
    (w.agent_ms, w.recognise_ms) = (900, 300);
    w.voice(900, "Tell me about the weather.");
    w.silence(560);
    assert_eq!((w.turns(), w.user_lines().len()), (1, 1));
    w.silence(300);
    w.voice(700, "In the north.");
    w.silence(700);
    assert_eq!(w.user_lines(), ["Tell me about the weather. In the north."]);
    w.settle();
    assert_eq!((w.counted(&Count::JoinedTurn), w.spoken().matches("I do not know that.").count()), (1, 1), "one answer to both: {}", w.spoken());
    // What a call asked for the first half goes with it.
    let mut w = World::new();
    w.settle();
    (w.agent_ms, w.recognise_ms) = (200, 300);
    w.voice(900, "Add milk");
    w.script = VecDeque::from([Heard::text_only("Add milk")]);
    w.silence(540);
    w.voice(60, "and eggs to my notes.");
    w.voice(640, "and eggs to my notes.");
    w.silence(700);
    w.settle();
    assert!(w.result_codes().iter().all(|r| r.1 == "cancelled"), "{:?}", w.result_codes());
    assert_eq!(w.user_lines().last().map(String::as_str), Some("Add milk and eggs to my notes."));
    assert!(w.spoken().contains("Add milk and eggs to your notes?"), "{}", w.spoken());
    // Once something was heard of the answer it is a turn of its own.
    let mut w = World::new();
    w.settle();
    w.voice(900, "Tell me about the weather.");
    w.silence(560);
    assert!(w.sounds());
    w.voice(700, "In the north.");
    w.silence(700);
    assert_eq!(w.user_lines().len(), 2);
}

#[test]
fn field_case_7_a_provider_that_says_interrupted_is_counted_and_not_believed() {
    let mut w = speaking(0);
    (0..10).for_each(|_| w.input(Input::Interrupted));
    assert!(w.sounds());
    w.silence(30_000);
    assert_eq!((w.counted(&Count::ProviderInterrupted), w.counted(&Count::BargeIn), w.last_speech().0), (10, 0, w.last_speech().1));
}

#[test]
fn field_case_9_short_answers_are_decided_quickly() {
    let mut delays = Vec::new();
    for n in 0..100u64 {
        let mut w = World::new();
        w.say("Add buy milk to my notes.");
        assert!(w.engine.asked_is_heard());
        w.silence(QUIET_AFTER_MS);
        w.recognise_ms = 280 + n * 37 % 290;
        let text = ["No.", "Yes, go ahead.", "Approve.", "Yes.", "Don't do it."][n as usize % 5];
        let voiced = 240 + n % 7 * 60 + if n % 5 == 1 { 400 } else { 0 };
        w.voice(voiced, text);
        let (last, lines) = (w.now, w.events.len());
        let decided = |w: &World| w.events[lines..].iter().any(|e| matches!(&e.kind, EventKind::Transcript { role: Role::User, .. }));
        while !decided(&w) && w.now < last + 5_000 { w.frame(false) }
        delays.push(w.now - last);
        assert_eq!(w.ran.len(), usize::from(n % 5 == 1), "{text}");
    }
    delays.sort_unstable();
    println!("last sample to decision: median {} ms, p95 {} ms", delays[50], delays[94]);
    assert!(delays[94] <= 900, "{delays:?}");
}

#[test]
fn field_case_40_the_first_word_after_connecting_is_there() {
    // Six seconds that were spoken while the leg connected arrive at once, from the first sample on.
    let mut w = World::new();
    w.script = VecDeque::from([Heard::text_only("Tell me about the weather in the north and in the south.")]);
    for n in 0..300u64 { w.input(Input::Frame(Frame { probability: 0.9, level_dbfs: -20.0 - (n % 6) as f32 * 4.0 })) }
    w.silence(600);
    assert_eq!(w.looks.last(), Some(&(0, 6_100)), "all of it is recognised, from the first sample");
    assert_eq!(w.user_lines(), ["Tell me about the weather in the north and in the south."]);
}

#[test]
fn a_stuck_detector_and_a_muted_microphone_end_the_turn_within_1_5_s() {
    let level = |w: &mut World, ms: u64, probability: f32, level_dbfs: f32| for _ in 0..ms / 20 {
        w.now += 20;
        w.input(Input::Frame(Frame { probability, level_dbfs }));
    };
    for (probability, level_dbfs) in [(0.9, -40.0), (0.9, -120.0), (0.0, -120.0)] {
        let mut w = World::new();
        w.settle();
        w.voice(1_000, "Tell me about the weather.");
        level(&mut w, 1_500, probability, level_dbfs);
        assert_eq!(w.turns(), 1, "{probability} at {level_dbfs}");
    }
    // No frames at all: only the clock goes on.
    let mut w = World::new();
    w.settle();
    w.voice(1_000, "Tell me about the weather.");
    w.now += 1_500;
    w.input(Input::Tick);
    assert_eq!(w.turns(), 1);
    // Over playback the same gives the floor back.
    let mut w = speaking(0);
    w.voice(300, "");
    level(&mut w, 1_500, 0.9, -40.0);
    assert!(w.sounds());
}

#[test]
fn a_look_is_cancelled_when_speech_goes_on() {
    let mut w = World::new();
    w.settle();
    w.recognise_ms = 400;
    w.voice(600, "Tell me");
    w.silence(300);
    w.voice(600, "Tell me about the weather.");
    w.silence(900);
    assert_eq!((w.looks.len(), w.forgotten), (2, 1));
    assert_eq!(w.user_lines(), ["Tell me about the weather."]);
}

#[test]
fn a_question_that_was_held_counts_as_heard_only_when_its_last_sample_was() {
    let mut w = World::new();
    w.settle();
    w.say_now("Add buy milk to my notes.");
    w.silence(400);
    assert!(w.sounds() && !w.engine.asked_is_heard());
    w.recognise_ms = 200;
    w.voice(300, "Okay.");
    w.silence(600);
    assert!(w.sounds() && !w.engine.asked_is_heard());
    w.settle();
    assert!(w.engine.asked_is_heard());
    w.recognise_ms = 0;
    w.say_now("Yes, go ahead.");
    w.settle();
    assert_eq!(w.ran.len(), 1);
}

/// A conversation in which this language is spoken.
fn spoken_in(code: &str) -> World {
    let language = Language::of(code);
    let mut w = World::with(EngineConfig { ear: EarSettings { language, ..EarSettings::default() }, ..EngineConfig::default() });
    w.settle();
    w
}

/// What a recogniser of German reports: the words, and this sentence's score.
fn german(text: &str, phrase: &str) -> Heard {
    let table = phrase_table_of(Language::German);
    let id = table.iter().find(|s| s.phrase.spellings[0] == phrase).unwrap_or_else(|| panic!("{phrase} is not scored")).phrase.id;
    Heard { text: text.into(), free_ll: -0.5, tokens: 4, scores: vec![PhraseScore { id, ll: -0.4 }], ..Heard::default() }
}

impl World {
    /// Somebody says this, and the recogniser reports it so.
    fn say_heard(&mut self, heard: Heard) {
        self.script = VecDeque::from([heard]);
        (0..40).for_each(|_| self.frame(true));
        self.silence(1_000);
        self.script.clear();
        self.settle();
    }
}

#[test]
fn field_case_29_a_tool_is_approved_in_german_with_a_whole_sentence() {
    let mut w = spoken_in("de");
    w.say("Add buy milk to my notes.");
    assert!(w.spoken().ends_with("Say ja, mach das, if you want that, or say nein."), "{}", w.spoken());
    assert!(w.engine.asked_is_heard());
    w.silence(QUIET_AFTER_MS);
    w.say_heard(german("Ja.", "Ja"));
    assert!(w.ran.is_empty() && w.engine.asked_is_heard(), "a bare ja is neither yes nor no");
    assert!(w.spoken().ends_with("To be sure I heard you right, say ja, mach das, in those words, or say nein."), "{}", w.spoken());
    w.silence(QUIET_AFTER_MS);
    w.say_heard(german("Ja, mach das.", "Ja, mach das"));
    assert_eq!(w.ran.len(), 1);
    for (text, phrase) in [("Nein.", "Nein"), ("Lass das!", "Lass das"), ("Ja, mach das nicht.", "Ja, mach das nicht"), ("Stopp!", "Stopp")] {
        let mut w = spoken_in("de");
        w.say("Add buy milk to my notes.");
        w.silence(QUIET_AFTER_MS);
        w.say_heard(german(text, phrase));
        assert!(w.ran.is_empty() && w.engine.question().is_none_or(|q| !q.state.is_open()), "{text}");
        assert!(w.result_codes().iter().any(|r| r.1 == "denied_by_user"), "{text}: {:?}", w.result_codes());
    }
    // Plan mode is turned on in German, and left at the chat or a screen.
    let mut w = spoken_in("de");
    w.say_heard(german("Planmodus an.", "Planmodus an"));
    assert!(w.engine.snapshot().in_plan());
    w.silence(QUIET_AFTER_MS);
    w.say_heard(german("Verlasse den Planmodus.", "Verlasse den Planmodus"));
    assert!(w.engine.snapshot().in_plan() && w.engine.question().is_none() && w.spoken().contains("That needs the chat or the screen"), "{}", w.spoken());
}

#[test]
fn field_case_29_in_a_language_without_sentences_a_question_says_once_where_to_answer_it() {
    for code in ["fr", "xx"] {
        let mut w = spoken_in(code);
        w.say("Add buy milk to my notes.");
        let told = "It can only be answered in the chat or on the screen.";
        for said in ["Oui.", "Oui, vas-y.", "Ja, mach das.", "Yes, go ahead.", "Go ahead."] {
            w.silence(QUIET_AFTER_MS);
            w.say(said);
        }
        assert!(w.ran.is_empty(), "{code}");
        assert_eq!((w.spoken().matches(told).count(), w.engine.snapshot().approvals.len()), (1, 1), "{code}: {}", w.spoken());
        let door = OperatorDoor::vouch(Surface::Chat).unwrap_or_else(|| unreachable!());
        w.input(Input::Typed { door, text: "yes".into(), ticket: Ticket(7) });
        w.settle();
        assert_eq!(w.ran.len(), 1, "{code}: the chat answers it");
        w.say("Enter plan mode.");
        w.silence(QUIET_AFTER_MS);
        w.say("Exit plan mode.");
        assert!(w.engine.snapshot().in_plan() && w.engine.question().is_none(), "{code}: it is entered, not left");
    }
}

#[test]
fn field_case_30_leaving_asks_once_more_and_entering_does_not() {
    for said in ["Enter plan mode.", "Let's plan first.", "Please go into planning mode.", "Interplan mode.", "Enter plane mode.", "And her plan mode."] {
        let mut w = World::new();
        w.settle();
        w.say(said);
        assert!(w.engine.snapshot().in_plan() && w.turns() == 0, "{said}");
    }
    for said in ["Don't enter plan mode.", "What is plan mode?", "The docs say 'enter plan mode'.", "Should I enter plan mode?", "I will enter plan mode later."] {
        let mut w = World::new();
        w.settle();
        w.say(said);
        assert!(!w.engine.snapshot().in_plan() && w.turns() == 1, "{said}: ordinary speech");
    }
    for (answer, stays) in [("Yes.", true), ("No.", true), ("Yes, go ahead.", false)] {
        let mut w = World::new();
        w.settle();
        w.say("Enter plan mode.");
        w.silence(QUIET_AFTER_MS);
        w.say("Exit plan mode.");
        assert!(w.engine.snapshot().in_plan() && w.engine.asked_is_heard(), "it asks once more");
        w.silence(QUIET_AFTER_MS);
        w.say(answer);
        assert_eq!(w.engine.snapshot().in_plan(), stays, "{answer}");
    }
}

#[test]
fn eight_hours_with_two_thousand_barge_ins_stay_within_bounds() {
    let mut w = World::with(EngineConfig::default());
    w.settle();
    let words = ["Stop.", "Tell me more about the weather.", "Okay.", "", "Wait.", "What mode are you in?"];
    let (mut half, mut cut) = (0, 0);
    let cycle = 8 * 3_600_000 / 2_000;
    for n in 0..2_000u64 {
        let until = (n + 1) * cycle;
        w.say_now("What can I say?");
        w.silence(600);
        w.recognise_ms = 200 + n % 300;
        w.voice(300 + n % 5 * 100, words[n as usize % words.len()]);
        w.silence(1_000);
        w.recognise_ms = 0;
        w.script.clear();
        while w.now < until { w.frame(false) }
        cut += w.counted(&Count::BargeIn) + w.counted(&Count::Duck);
        for list in [w.events.len(), w.counts.len(), w.told.len(), w.sounded.len(), w.looks.len()] { assert!(list < 200, "{list}") }
        w.events.clear();
        w.counts.clear();
        w.told.clear();
        w.sounded.clear();
        w.looks.clear();
        // All that the engine holds, written out.
        if n == 999 { half = format!("{:?}", w.engine).len() }
    }
    let end = format!("{:?}", w.engine).len();
    assert!(cut >= 2_000, "{cut}");
    assert!(!w.engine.is_busy());
    assert!(end.abs_diff(half) < half / 50, "{half} at four hours, {end} at eight");
}
