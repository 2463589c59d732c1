//! What is shown and passed on of ordinary speech: digits for spelled numbers, titles for near words, and neither where it decides.

use super::super::event::EventKind;
use super::super::heard::Heard;
use super::super::input::{Action, Input, LegFacts, Output};
use super::super::turn::Frame;
use super::{Engine, EngineConfig};

/// Says one sentence to an engine; the lines it shows and what it passed to the agent.
fn shown(engine: &mut Engine, now: &mut u64, text: &str) -> Vec<(String, bool)> {
    let mut lines = Vec::new();
    let mut frames: Vec<f32> = vec![0.0; 40];
    frames.extend(vec![0.9; 50]);
    frames.extend(vec![0.0; 60]);
    for probability in frames {
        let level_dbfs = -20.0 - (*now % 7) as f32;
        let mut todo = vec![Input::Frame(Frame { probability, level_dbfs })];
        while let Some(input) = todo.pop() {
            engine.handle_input(*now, input);
            loop {
                match engine.poll_output() {
                    Output::Event(event) => {
                        if let EventKind::Transcript { text, for_agent, .. } = event.kind { lines.push((text, for_agent)) }
                    }
                    Output::Action(Action::Recognise { utterance, to_ms, .. }) => todo.push(Input::Heard { utterance, to_ms, result: Ok(Heard::text_only(text)) }),
                    Output::Action(_) => {}
                    Output::Wait(_) => break,
                }
            }
        }
        *now += 20;
    }
    lines
}

fn engine() -> Engine {
    let mut engine = Engine::new(EngineConfig::default(), 1_000_000);
    engine.handle_input(0, Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote: false }));
    engine.handle_input(0, Input::Titles(vec!["Birthday plan".into()]));
    engine
}

#[test]
fn field_case_31_the_mirror_shows_digits() {
    let (mut engine, mut now) = (engine(), 0);
    assert_eq!(shown(&mut engine, &mut now, "Open port eight zero eight zero."), [("Open port 8080.".to_string(), true)]);
    assert_eq!(shown(&mut engine, &mut now, "Read the birthday plans."), [("Read the Birthday plan.".to_string(), true)]);
}

#[test]
fn what_the_grammar_judged_is_shown_as_it_was_written() {
    let (mut engine, mut now) = (engine(), 0);
    assert_eq!(shown(&mut engine, &mut now, "Confirm plan one two three."), [("Confirm plan 123.".to_string(), true)], "no sentence of the grammar");
    assert_eq!(shown(&mut engine, &mut now, "Enter plan mode."), [("Enter plan mode.".to_string(), false)]);
}
