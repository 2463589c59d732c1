//! Commander, catalogue, gate and runner together: what is said becomes a deed, or does not, and is told.

use serde_json::{Value, json};
use voxgate::agent::commander::Commander;
use voxgate::engine::conversation::{AgentOutput, GatewayNote, Item, StepRequest};
use voxgate::engine::gate::{Gate, Policy, Verdict};
use voxgate::engine::mode::{Autonomy, Posture};
use voxgate::engine::plan::{KeptCall, Proposal, Step};
use voxgate::engine::tool::{SessionDeed, ToolCall};
use voxgate::tools::{BuiltinContext, Catalogue, ToolRunner, refusal_outcome};

/// A conversation without a driver: one turn at a time, and the draft that refusals build.
struct Talk {
    dir: tempfile::TempDir,
    gate: Gate,
    catalogue: Catalogue,
    commander: Commander,
    runner: ToolRunner,
    items: Vec<Item>,
    draft: Vec<Step>,
    presented: Option<Proposal>,
    asked: Vec<String>,
}

impl Talk {
    fn new(manifest: Option<&str>) -> Talk {
        let dir = tempfile::tempdir().expect("a folder");
        let tools = dir.path().join("tools");
        std::fs::create_dir(&tools).expect("a folder");
        if let Some(text) = manifest {
            std::fs::write(tools.join("mine.json"), text).expect("a file");
        }
        let catalogue = Catalogue::load(true, Some(&tools)).expect("the manifests load");
        let gate = Gate::default();
        let context = BuiltinContext { notes_dir: dir.path().join("notes"), files_root: None };
        Talk {
            runner: ToolRunner::new(catalogue.clone(), gate.clone(), context).with_session("s"),
            commander: Commander::new(catalogue.sentences()),
            dir, gate, catalogue, items: Vec::new(), draft: Vec::new(), presented: None, asked: Vec::new(),
        }
    }

    fn respond(&self) -> Vec<AgentOutput> {
        let plan_mode = self.gate.stamp().posture == Posture::Plan;
        self.commander.respond(&StepRequest {
            turn: Default::default(), step: 0, items: self.items.clone(), tools: self.catalogue.offered(plan_mode), plan_mode,
            draft: self.draft.clone(), approved: None, instructions: String::new(),
        })
    }

    async fn say(&mut self, words: &str) -> String {
        self.items.push(Item::User { id: "u".into(), text: words.into() });
        self.turn().await
    }

    /// Responses and their calls until there is no further call; answers what was said at the end.
    async fn turn(&mut self) -> String {
        for _ in 0..4 {
            let (mut said, mut calls) = (String::new(), Vec::new());
            for output in self.respond() {
                match output {
                    AgentOutput::Text(text) => said += &text,
                    AgentOutput::Call { id, tool, arguments } => calls.push((id, tool, arguments)),
                }
            }
            if calls.is_empty() {
                self.items.push(Item::Assistant { id: "a".into(), text: said.clone(), speech: None });
                return said;
            }
            for (id, tool, text) in calls {
                let arguments = self.catalogue.prepare(&tool, &text).expect("the commander writes whole calls");
                let call = ToolCall { id, tool, arguments, stamp: self.gate.stamp() };
                self.items.push(Item::Call { id: call.id.clone(), tool: call.tool.clone(), arguments: call.arguments.clone() });
                let output = self.make(call.clone()).await;
                self.items.push(Item::Result { id: call.id, tool: call.tool, output });
            }
        }
        panic!("the turn has no end");
    }

    async fn make(&mut self, call: ToolCall) -> Value {
        let spec = self.catalogue.spec(&call.tool);
        if let Verdict::Ask { screen_only: false } = self.gate.judge(&call, spec, Policy::default(), None) {
            self.asked.push(self.catalogue.describe(&call).ask);
        }
        let yes = Policy { autonomy: Autonomy::Loose, ..Policy::default() };
        match self.gate.judge(&call, spec, yes, None) {
            Verdict::Allow(permit) => {
                let outcome = self.runner.run(permit, call).await;
                if let Some(SessionDeed::SubmitPlan(arguments)) = &outcome.session {
                    let mut plan = Proposal::parse(arguments).expect("a whole plan");
                    plan.keep_from(&self.draft);
                    self.presented = Some(plan);
                    return json!({"success": true, "version": 1});
                }
                outcome.output
            }
            Verdict::Refuse(refusal) => {
                let kept = KeptCall { tool: call.tool.clone(), arguments: call.arguments.clone(), hash: call.hash() };
                self.draft.push(Step { title: self.catalogue.describe(&call).step, kept: Some(kept), ..Step::default() });
                refusal_outcome(&refusal, &call.tool, "s").output
            }
            Verdict::Ask { .. } => panic!("nobody is asked here"),
        }
    }
}

#[tokio::test]
async fn the_conversation_that_must_work_at_this_level() {
    let mut talk = Talk::new(None);
    assert_eq!(talk.say("What's in my notes?").await, "You have no notes.");
    assert_eq!(talk.say("Add buy milk to my notes.").await, "I added buy milk to your notes.");
    assert_eq!(talk.asked, ["Add buy milk to your notes?"]);
    talk.gate.flip(Posture::Plan);
    assert_eq!(talk.say("Add buy eggs to my notes.").await, "", "the gateway says in its own voice that it was refused");
    assert_eq!(talk.say("What's in my notes?").await, "You have one note: buy milk.");
    assert_eq!(talk.say("Present the plan.").await, "");
    let plan = talk.presented.take().expect("a plan was presented");
    assert_eq!((plan.title().as_str(), plan.steps.len()), ("Add buy eggs to the notes", 1));
    assert_eq!(plan.steps[0].kept, talk.draft[0].kept);
    talk.gate.flip(Posture::Default);
    talk.items.push(Item::Gateway(GatewayNote::Approved { version: 1, title: plan.title(), steps: plan.steps }));
    assert_eq!(talk.turn().await, "Done. I added buy eggs to your notes.");
    assert_eq!(talk.say("Read me my notes.").await, "You have 2 notes: buy milk, and buy eggs.");
    assert_eq!(talk.say("Delete the note about milk.").await, "I moved the note buy milk to the trash.");
    assert_eq!(talk.say("What's in my notes?").await, "You have one note: buy eggs.");
    let ids: Vec<_> = talk.items.iter().filter_map(|i| if let Item::Call { id, .. } = i { Some(id) } else { None }).collect();
    assert!(ids.iter().enumerate().all(|(n, id)| !ids[..n].contains(id)), "no name of a call is used twice");
}

#[tokio::test]
async fn a_manifest_of_the_operators_works_by_voice() {
    let mut talk = Talk::new(Some(r#"{"skill_id": "shopping", "permissions": ["notes_write"], "endpoints": [{
        "id": "add", "method": "CUSTOM", "url": "builtin:notes_add", "description": "Puts something on the shopping list.", "effect": "files",
        "params": [{"name": "text", "type": "string", "required": true, "description": "What to buy"}],
        "ask": "Put {text} on the shopping list?", "step": "Put {text} on the shopping list",
        "phrases": ["we (need|are out of) {text}"], "answer": "Now {text} is on the list."}]}"#));
    assert_eq!(talk.say("We are out of coffee filters.").await, "Now coffee filters is on the list.");
    assert_eq!(talk.asked, ["Put coffee filters on the shopping list?"]);
    talk.gate.flip(Posture::Plan);
    assert_eq!(talk.say("We need tea.").await, "", "the gateway says in its own voice that it was refused");
    assert_eq!(talk.draft[0].title, "Put tea on the shopping list");
    assert_eq!(talk.say("What's in my notes?").await, "You have one note: coffee filters.");
    let files = std::fs::read_dir(talk.dir.path().join("notes")).expect("a folder").count();
    assert_eq!(files, 1);
}
