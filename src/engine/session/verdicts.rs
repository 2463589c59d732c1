//! One gate in front of every door: a call gets the same verdict whoever asked for it and however it came. Random tools, rules, modes
//! and policies; the same call through each column; one row that differs is a failure.

use serde_json::{Value, json};

use super::super::authority::{Decide, OperatorDoor, Surface};
use super::super::event::{EventKind, QuestionKind, Role};
use super::super::id::{CallId, ItemId};
use super::super::input::{Input, LegFacts, Remote, Ticket, TurnEnd};
use super::super::mode::{AskPolicy, Autonomy};
use super::super::rules::Rules;
use super::super::tool::{Effect, Tier, ToolSpec};
use super::tests::World;
use super::EngineConfig;

/// How a call comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// Typed in the chat, wanted by the built-in agent.
    Typed,
    /// Spoken on a chained leg.
    Chained,
    /// Wanted by a provider that answers when it is asked: a response with words before the call.
    OpenAi,
    /// Wanted by a provider that answers by itself: its transcript of the person comes first.
    Gemini,
    /// The tool is the client's own.
    ClientTool,
    /// Sent by a REST caller.
    Rest,
}

const COLUMNS: [Column; 6] = [Column::Typed, Column::Chained, Column::OpenAi, Column::Gemini, Column::ClientTool, Column::Rest];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stance { Default, Plan, Draining, Review }

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Ran,
    /// A person is asked; true: a voice may answer.
    Asked(bool),
    Refused(String),
}

/// What one row is made of.
#[derive(Clone, Debug)]
struct Row {
    tool: ToolSpec,
    /// The conversation knows no such tool.
    unknown: bool,
    stance: Stance,
    autonomy: Autonomy,
    ask: AskPolicy,
    rules: Vec<String>,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T { list[self.below(list.len())] }
}

const TOOL: &str = "probe__act";

fn row(dice: &mut Dice) -> Row {
    let effect = dice.of(&[Effect::Read, Effect::View, Effect::Session, Effect::Files, Effect::Host, Effect::External, Effect::Unknown]);
    let tool = ToolSpec {
        name: TOOL.into(), description: String::new(), parameters: json!({}), effect, tier: dice.of(&[None, None, Some(Tier::Safe), Some(Tier::Confirm), Some(Tier::Deny)]),
        irreversible: dice.below(4) == 0, needs_person: dice.below(4) == 0, ask: (dice.below(2) == 0).then(|| "Do {text}?".to_string()), step: None, display: TOOL.into(),
    };
    let rules = ["allow tool:probe__act", "ask tool:probe__act", "deny tool:probe__act", "allow effect:files", "ask effect:read", "deny effect:external", "ask irreversible", "deny needs-human"];
    Row {
        tool, unknown: dice.below(12) == 0, stance: dice.of(&[Stance::Default, Stance::Plan, Stance::Draining, Stance::Review]), autonomy: dice.of(&[Autonomy::Strict, Autonomy::Hybrid, Autonomy::Loose]),
        ask: dice.of(&[AskPolicy::Ask, AskPolicy::Ask, AskPolicy::Bypass, AskPolicy::Refuse]), rules: (0..dice.below(3)).map(|_| dice.of(&rules).to_string()).collect(),
    }
}

fn through(row: &Row, column: Column) -> Verdict {
    let lines: Vec<&str> = std::iter::once("allow tool:slow__write").chain(row.rules.iter().map(String::as_str)).collect();
    let rules = Rules::parse(&lines).unwrap_or_else(|e| panic!("{lines:?}: {e}"));
    let mut w = World::with(EngineConfig { rules: rules.into(), autonomy: row.autonomy, start_ask: row.ask, ..EngineConfig::default() });
    let remote = matches!(column, Column::OpenAi | Column::Gemini | Column::ClientTool);
    let mut tools: Vec<ToolSpec> = w.engine.config.tools.iter().cloned().collect();
    tools.push(ToolSpec { name: "slow__write".into(), effect: Effect::Files, tier: Some(Tier::Safe), irreversible: false, needs_person: false, ask: None, ..row.tool.clone() });
    if !row.unknown && column != Column::ClientTool { tools.push(row.tool.clone()) }
    w.engine.config.tools = tools.into();
    w.input(Input::LegGone);
    w.input(Input::LegAttached(LegFacts { hears: true, speaks: true, holds: true, remote }));
    if column == Column::ClientTool && !row.unknown { w.input(Input::Remote(Remote::Tools(vec![row.tool.clone()]))) }
    match row.stance {
        Stance::Default => {}
        Stance::Plan => { w.decide(Decide::Enter { reason: String::new() }); }
        Stance::Review => {
            w.decide(Decide::Enter { reason: String::new() });
            want(&mut w, column, "plan__submit", &json!({"summary": "See what is there.", "steps": ["look"]}));
            w.settle();
        }
        Stance::Draining => {
            // What runs already goes on while the mode comes on: nothing else begins.
            w.tool_ms = 8_000;
            want(&mut w, column, "slow__write", &json!({}));
            w.decide(Decide::Enter { reason: String::new() });
        }
    }
    if row.stance != Stance::Draining { w.settle() }
    let before = w.events.len();
    let ran = w.ran.len();
    want(&mut w, column, TOOL, &json!({"text": "this"}));
    if row.stance == Stance::Draining {
        // The lane goes on when the call that runs has ended.
        w.tool_ms = 0;
        w.silence(8_000);
    }
    // What was waiting behind another turn has its own.
    for _ in 0..3 { w.settle() }
    if w.ran[ran..].iter().any(|r| r.0 == TOOL) { return Verdict::Ran }
    let refused = w.events[before..].iter().find_map(|e| match &e.kind { EventKind::ToolResult { tool, error_code, .. } if tool == TOOL => Some(error_code.clone()), _ => None });
    if let Some(code) = refused { return Verdict::Refused(code) }
    let voice = w.engine.question().is_some_and(|q| q.kind == QuestionKind::Tool) && !row.tool.irreversible;
    assert!(voice || !w.engine.snapshot().approvals.is_empty(), "{column:?}: nothing came of {row:?}: {:?}", (w.result_codes(), w.spoken(), w.replies.last(), &w.steps.last().map(|s| s.items.len())));
    Verdict::Asked(!row.tool.irreversible)
}

fn want(w: &mut World, column: Column, tool: &str, arguments: &Value) {
    let sentence = format!("call {tool} {arguments}");
    let typed = |w: &mut World, surface: Surface| {
        let door = OperatorDoor::vouch(surface).unwrap_or_else(|| panic!("{surface:?} is no door"));
        let ticket = Ticket(70_000 + w.replies.len() as u64);
        w.input(Input::Typed { door, text: sentence.clone(), ticket });
    };
    match column {
        Column::Typed => typed(w, Surface::Chat),
        Column::Rest => typed(w, Surface::Rest),
        Column::Chained => w.say_now(&sentence),
        Column::OpenAi | Column::ClientTool => {
            w.input(Input::Remote(Remote::Began));
            w.input(Input::Remote(Remote::Words("Let me see.".into())));
            call(w, tool, arguments);
            w.input(Input::Remote(Remote::Done(TurnEnd::Completed)));
        }
        Column::Gemini => {
            w.input(Input::Remote(Remote::Line { role: Role::User, item: ItemId("said".into()), text: sentence.clone() }));
            w.input(Input::Remote(Remote::Began));
            call(w, tool, arguments);
            w.input(Input::Remote(Remote::Done(TurnEnd::Completed)));
        }
    }
}

fn call(w: &mut World, tool: &str, arguments: &Value) {
    let id = CallId(format!("remote_{}", w.events.len()));
    w.input(Input::Remote(Remote::Call { id, tool: tool.into(), arguments: Ok(arguments.clone()) }));
}

#[test]
fn every_column_gives_the_same_verdict() {
    let (mut dice, mut seen) = (Dice(5), std::collections::BTreeMap::new());
    for n in 0..400 {
        let row = row(&mut dice);
        let verdicts: Vec<(Column, Verdict)> = COLUMNS.into_iter().map(|c| (c, through(&row, c))).collect();
        for (column, verdict) in &verdicts { assert_eq!(verdict, &verdicts[0].1, "row {n}: {column:?} differs from {:?} for {row:#?}", verdicts[0].0) }
        *seen.entry(format!("{:?}", verdicts[0].1)).or_insert(0) += 1;
    }
    assert!(seen.len() >= 5, "the rows come to too few ends: {seen:?}");
}
