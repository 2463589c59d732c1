//! The gateway on a loudspeaker: what it plays comes back through a simulated room, and decides nothing.

use crate::conversation::{SCRIPT, nothing_failed, the_notes_are_what_was_approved};
use crate::speech::{RATE_HZ, Speaker, quiet};
use crate::talking::{Event, Run, hold_with, talk_with};

const SPEAKER: Speaker = Speaker::FliteSlt;
/// Who holds whole conversations: of the voices here the one most like a person, and not the one that answers.
const PERSON: Speaker = Speaker::PiperJoe;
/// Who speaks in noise, with a headset: there is no echo that the voices would have to be told apart by, and ordinary words have
/// to be understood as well as commands.
const IN_NOISE: Speaker = Speaker::Hibari;

/// What somebody at the microphone was taken to say.
fn spoken(run: &Run) -> Vec<&str> { run.events.iter().filter(|e| e.kind == "transcript" && e.is("role", "user")).map(|e| e.text("text")).collect() }

fn help(run: &Run) -> &Event { run.speeches().find(|e| e.text("text").starts_with("You can say")).unwrap_or_else(|| panic!("{}", run.told())) }

fn silence_of(home: &std::path::Path, canceller: bool) {
    std::fs::write(home.join("config.toml"), format!("[listen]\necho_canceller = {canceller}\n")).expect("a configuration");
}

/// Field case 3: an agent on loudspeakers hears itself and interrupts itself, above all in the first seconds, when no canceller
/// has learnt anything. Each conversation here begins with such seconds.
#[test]
fn field_case_3_our_own_voice_on_a_loudspeaker_interrupts_nothing_and_a_person_over_it_does() {
    for room in ["echo=-6,delay=80,rt60=300,noise=-58", "echo=-12,delay=200,rt60=500", "echo=-20,delay=400,rt60=300,noise=-58"] {
        let question = SPEAKER.say("What can I say?");
        let alone = talk_with(&[quiet(1_000), question.clone(), quiet(14_000)].concat(), &["--loudspeaker", room], |_| {});
        assert_eq!(spoken(&alone).len(), 1, "{room}: only the person has spoken\n{}", alone.told());
        let cut: Vec<&str> = alone.speeches().filter(|s| s.number("heard_ms") < s.number("total_ms")).map(|s| s.text("text")).collect();
        assert!(cut.is_empty(), "{room}: {cut:?} was interrupted by its own echo");
        // In the middle of it somebody says something.
        let mut mic = [quiet(1_000), question].concat();
        mic.resize(((Run::began_ms(help(&alone)) + 2_500) * u64::from(RATE_HZ) / 1000) as usize, 0);
        let over = talk_with(&[mic, SPEAKER.say("Be quiet."), quiet(3_000)].concat(), &["--loudspeaker", room], |_| {});
        let speech = help(&over);
        assert!(speech.number("heard_ms") < speech.number("total_ms"), "{room}: the person was not heard\n{}", over.told());
    }
}

/// Field case 14: a question's own words, "say yes, go ahead", come back into the microphone at every level and with no
/// canceller at all. They never approve.
#[test]
fn field_case_14_the_echo_of_a_question_never_answers_it() {
    for (room, canceller) in [("echo=0,delay=80", false), ("echo=-6,delay=150,rt60=200", false), ("echo=-20,delay=400,rt60=500", false), ("echo=-6,delay=120", true)] {
        let mic = [quiet(1_000), SPEAKER.say("Add buy milk to my notes."), quiet(8_000)].concat();
        let run = talk_with(&mic, &["--loudspeaker", room], |home| silence_of(home, canceller));
        assert!(run.events.iter().any(|e| e.kind == "question"), "{room}: nothing was asked\n{}", run.told());
        let approved = run.events.iter().filter(|e| e.kind == "approval_resolved" && e.is("status", "approved")).count();
        let ran = run.events.iter().filter(|e| e.kind == "tool_result" && e.payload["success"] == true).count();
        assert_eq!((approved, ran), (0, 0), "{room}, canceller {canceller}\n{}", run.told());
    }
}

#[test]
fn the_seven_steps_hold_on_a_loudspeaker() {
    let held = hold_with(PERSON, SCRIPT, &[], SCRIPT.len(), &["--loudspeaker", "echo=-12,delay=120,rt60=300,noise=-60"], |_| {});
    the_notes_are_what_was_approved(&held.run);
    nothing_failed(&held.run);
}

/// A microphone's level is what it is: the noise is 10 dB under the loud parts of this voice.
#[test]
fn the_seven_steps_hold_in_noise_10_db_under_the_voice() {
    let level = voxgate::eval::kept_voice::active_dbfs(&IN_NOISE.say("What's in my notes?"));
    let room = format!("echo=none,noise={:.1}", level - 10.0);
    let held = hold_with(IN_NOISE, SCRIPT, &[], SCRIPT.len(), &["--loudspeaker", &room], |_| {});
    the_notes_are_what_was_approved(&held.run);
    nothing_failed(&held.run);
}
