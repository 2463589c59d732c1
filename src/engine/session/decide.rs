//! Carrying decisions out: the same few verbs, whether they were spoken, clicked, typed or posted.

use super::super::authority::{By, Decide, OperatorDoor, Surface, UserAction};
use super::super::conversation::GatewayNote;
use super::super::event::{EventKind, Question, QuestionKind, QuestionState, Role};
use super::super::grammar::{Meaning, meaning_in, number_word, words_of};
use super::super::id::{ItemId, QuestionId, UtteranceId};
use super::super::input::{CutWhy, Ticket};
use super::super::intent::{Decision, Open};
use super::super::language::Language;
use super::super::mode::AskPolicy;
use super::super::plan::{PlanStatus, PlanVersion};
use super::Engine;

/// Other answers than yes or no after which a question is left to the screen.
const NEITHER_MAX: u32 = 2;

impl Engine {
    /// True when this is the second time that words do not answer the open question: it steps aside for them.
    pub(super) fn gives_up_on_question(&mut self, decision: &Decision) -> bool {
        let Decision::Neither { bare: false } = decision else { return false };
        self.asked.neither += 1;
        if self.asked.neither < NEITHER_MAX {
            return false;
        }
        match self.question().map(|q| q.kind) {
            Some(QuestionKind::Tool) => self.park_asked(),
            Some(_) => self.end_question("withdrawn", &By::gateway()),
            None => return false,
        }
        true
    }

    /// A spoken decision takes effect.
    pub(super) fn decide_by_voice(&mut self, utterance: UtteranceId, words: &str, decision: Decision) {
        let by = Self::by_voice(utterance, words);
        match decision {
            Decision::Enter => self.on_decide(&UserAction::spoken(Decide::Enter { reason: String::new() }, utterance, words), None),
            Decision::Status => { let text = self.status_sentence(); self.say_plain(text) }
            Decision::Read(step) => self.read_plan(step),
            Decision::Changes(comments) => self.on_decide(&UserAction::spoken(Decide::RequestChanges { version: None, comments }, utterance, words), None),
            Decision::Dismiss => self.on_decide(&UserAction::spoken(Decide::Dismiss { version: None }, utterance, words), None),
            Decision::Stop => self.on_decide(&UserAction::spoken(Decide::StopSpeech, utterance, words), None),
            Decision::CancelTurn => self.on_decide(&UserAction::spoken(Decide::StopTurn, utterance, words), None),
            Decision::Help => { let text = self.help_sentence(); self.say_plain(text) }
            Decision::Repeat => self.say_again(),
            Decision::LeaveQuestion => self.ask_leave(),
            Decision::ConfirmQuestion(version) => self.ask_approve(version),
            Decision::RefusedVersion(version) => self.say_wrong_version(version),
            Decision::WhichVersion => self.say_which_version(),
            Decision::ScreenOnly if self.language() == Language::English => self.say_plain("That needs the screen; by voice I only switch to plan mode and back to asking."),
            Decision::ScreenOnly => self.say_plain("That needs the chat or the screen; in this language I only turn plan mode on by voice."),
            Decision::Approve => self.answer_open(true, utterance, &by),
            Decision::Deny => self.answer_open(false, utterance, &by),
            Decision::Hold => self.hold_question(),
            Decision::Neither { bare } => self.say_hint(bare),
            Decision::None => {}
        }
    }

    fn say_again(&mut self) {
        let last = self.last_said();
        self.say_plain(if last.is_empty() { "I have not said anything yet.".to_string() } else { last });
    }

    fn answer_open(&mut self, yes: bool, utterance: UtteranceId, by: &By) {
        let Some(question) = self.question().cloned() else { return };
        self.cut_speech(CutWhy::Interrupted);
        match question.kind {
            QuestionKind::Tool => {
                self.resolve_request(&question.id, if yes { "approved" } else { "denied" }, by);
            }
            QuestionKind::Approve if yes => {
                self.end_question("approved", by);
                let action = UserAction::spoken(Decide::Approve { version: question.version, hash: None }, utterance, &by.words);
                self.on_decide(&action, None);
            }
            QuestionKind::Leave if yes => {
                self.end_question("approved", by);
                self.on_decide(&UserAction::spoken(Decide::Leave, utterance, &by.words), None);
            }
            _ => {
                self.end_question("denied", by);
                self.say_plain("All right. Plan mode stays on.");
            }
        }
    }

    /// "Wait": the window begins anew, once more.
    fn hold_question(&mut self) {
        if self.question().is_none() {
            return;
        }
        if self.asked.open_since.is_some() {
            self.asked.open_since = Some(self.now);
            self.say_plain("All right, I wait.");
        } else {
            self.reask();
        }
    }

    fn say_hint(&mut self, bare: bool) {
        let (Some(question), Some((yes, no))) = (self.question().cloned(), self.language().answers()) else { return };
        let phrase = match question.kind {
            QuestionKind::Approve => format!("say confirm plan {}, with its number", number_word(question.version.unwrap_or(1))),
            _ => format!("say {yes}, in those words"),
        };
        if !matches!(question.state, QuestionState::Heard) {
            self.ask_once_more();
            return;
        }
        self.open_window_anew();
        let text = if bare { format!("To be sure I heard you right, {phrase}, or say {no}.") } else { format!("A question is still open. If you want that, {phrase}; otherwise say {no}.") };
        self.say_plain(text);
    }

    fn ask_leave(&mut self) {
        if !self.voice_may_loosen() { return }
        let waiting = self.snap.waiting().map(|p| p.version);
        let plan = waiting.map_or(String::new(), |n| format!(" Plan {} is set aside then.", number_word(n)));
        let text = format!("Should I leave plan mode?{plan} Say yes, go ahead, if you want that, or say no.");
        self.open_plan_question(QuestionKind::Leave, text, None);
    }

    fn ask_approve(&mut self, version: u32) {
        if !self.voice_may_loosen() { return }
        let Some(plan) = self.snap.version(version).cloned() else { return };
        let n = number_word(version);
        let steps = if plan.steps.len() == 1 { "one step".to_string() } else { format!("{} steps", number_word(plan.steps.len() as u32)) };
        let text = format!("Plan {n}, {}, with {steps}. Say confirm plan {n}, if that is what you want, or say no.", plan.title.trim_end_matches(['.', '!', '?']));
        self.open_plan_question(QuestionKind::Approve, text, Some(version));
    }

    fn voice_may_loosen(&mut self) -> bool {
        if !self.config.voice_exit {
            self.say_plain("Here the voice can only turn plan mode on. Leaving and approving need the screen.");
        }
        self.config.voice_exit
    }

    fn open_plan_question(&mut self, kind: QuestionKind, text: String, version: Option<u32>) {
        if self.question().is_some_and(|q| q.state.is_open() && q.state != QuestionState::ScreenOnly) {
            self.say_hint(false);
            return;
        }
        let id = QuestionId(format!("ask_{:06}", self.fresh()));
        let question = Question { id, kind, text, version, call: None, screen_only: false, state: QuestionState::Asked, outcome: String::new(), by: None };
        self.ask(question, Some(120_000));
    }

    fn say_wrong_version(&mut self, version: u32) {
        let text = match self.snap.waiting().map(|p| p.version) {
            Some(waiting) => format!("Plan {} is not the one that waits. The newest is plan {}.", number_word(version), number_word(waiting)),
            None if self.snap.version(version).is_some_and(|p| p.decided.is_some()) => self.decided_sentence(version),
            None => "No plan waits for a decision.".to_string(),
        };
        self.say_plain(text);
    }

    fn say_which_version(&mut self) {
        let text = match self.snap.waiting().map(|p| number_word(p.version)) {
            Some(n) => format!("Please name the plan by its number. It is plan {n}, so you would say, approve plan {n}, and I ask once more."),
            None => "No plan waits for a decision.".to_string(),
        };
        self.say_plain(text);
    }

    /// Reads the newest version; a draft is presented first; with nothing it says so.
    fn read_plan(&mut self, step: Option<u32>) {
        match self.snap.newest().filter(|p| !matches!(p.status, PlanStatus::Dismissed)).cloned() {
            Some(plan) => self.read_out(&plan, step),
            None if !self.snap.draft.is_empty() => self.queue_turn(Some(GatewayNote::PresentDraft)),
            None => self.say_plain("There is no plan yet."),
        }
    }

    /// Says a version's number, title and steps, or one step.
    pub(super) fn read_out(&mut self, plan: &PlanVersion, step: Option<u32>) {
        let n = number_word(plan.version);
        if let Some(step) = step {
            let text = match plan.steps.get((step as usize).wrapping_sub(1)) {
                Some(s) => format!("Step {} of plan {n}: {}.", number_word(step), trimmed(&s.title)),
                None => format!("Plan {n} has {} steps.", number_word(plan.steps.len() as u32)),
            };
            return self.say_plain(text);
        }
        let mut text = format!("Plan {n}: {}.", trimmed(&plan.title));
        for (i, s) in plan.steps.iter().enumerate() {
            text.push_str(&format!(" Step {}: {}.", number_word(i as u32 + 1), trimmed(&s.title)));
        }
        if plan.status == PlanStatus::Waiting {
            text.push_str(&match self.language() {
                Language::English => format!(" You can say approve plan {n}, or tell me what to change."),
                _ => " It is decided in the chat or on the screen; or tell me what to change.".to_string(),
            });
        }
        self.say_plain(text);
    }

    /// One sentence about the mode.
    pub(super) fn status_sentence(&self) -> String {
        if !self.snap.in_plan() {
            return match self.snap.ask {
                AskPolicy::Ask => "Plan mode is off. I ask before I change something.".into(),
                AskPolicy::Bypass => "Plan mode is off, and I change things without asking: bypass was chosen on a screen.".into(),
                AskPolicy::Refuse => "Plan mode is off, and nobody is asked: autonomous was chosen on a screen.".into(),
            };
        }
        let plan = match self.snap.waiting() {
            Some(p) => format!(" Plan {} waits for you.", number_word(p.version)),
            None if !self.snap.draft.is_empty() => format!(" The draft has {} so far.", count_of(self.snap.draft.len(), "step")),
            None => String::new(),
        };
        let running = if self.snap.draining > 0 { " One action that was already running has not ended yet." } else { "" };
        format!("Plan mode is on. I can look, but I change nothing.{plan}{running}")
    }

    fn help_sentence(&self) -> String {
        match self.language() {
            Language::English => {}
            Language::German => {
                let open = if self.moment().open == Open::Nothing { "" } else { " A question is open: answer ja, mach das, or nein, as you like." };
                return format!("You can say planmodus an, in welchem modus bist du, or lies mir den plan vor. Stopp ends what I am saying.{open} Plans are approved in the chat or on the screen. For anything else, just ask.");
            }
            Language::Other => return "In this language I know no commands by voice. Modes, plans and questions are for the chat or the screen. For anything else, just ask.".into(),
        }
        let mode = if self.snap.in_plan() { "read me the plan, what mode are you in, or exit plan mode, which I ask about once more" } else { "enter plan mode, or what mode are you in" };
        let open = match self.question().map(|q| q.kind) {
            Some(QuestionKind::Approve) => " A question is open: answer with confirm plan and its number, or with no.",
            Some(_) => " A question is open: answer yes, go ahead, or no, as you like.",
            None => "",
        };
        format!("You can say {mode}. Stop ends what I am saying, and say that again repeats it.{open} For anything else, just ask.")
    }

    /// The one door for decisions.
    pub(super) fn on_decide(&mut self, action: &UserAction, ticket: Option<Ticket>) {
        let by = action.by.clone();
        if self.is_for_the_root(&action.decide, ticket) {
            return;
        }
        match action.decide.clone() {
            Decide::Enter { reason } => {
                let already = self.snap.in_plan();
                self.enter_plan(&reason, &by);
                self.reply(ticket, true, if already { "already" } else { "ok" }, if already { "Plan mode was on already." } else { "Plan mode is on." });
            }
            Decide::Leave => self.leave(&by, ticket),
            Decide::Mode(mode) => self.set_mode(mode, &by, ticket),
            Decide::ApproveIn { version, hash, mode } => self.approve_in(version, hash.as_deref(), mode, &by, ticket),
            Decide::Approve { version, hash } => self.approve(version, hash.as_deref(), &by, ticket),
            Decide::RequestChanges { version, comments } => self.request_changes(version, &comments, &by, ticket),
            Decide::Dismiss { version } => self.dismiss(version, &by, ticket),
            Decide::BackToReview { version } => self.back_to_review(version, &by, ticket),
            Decide::Comment { id, version, step, quote, text } => self.comment(super::review::Written { id, version, step, quote, text }, &by, ticket),
            Decide::Continue { version } => self.go_on_with(version, &by, ticket),
            Decide::MarkDone { version } => self.mark_done(version, &by, ticket),
            Decide::AnswerTool { request, approve } => {
                if self.resolve_request(&request, if approve { "approved" } else { "denied" }, &by) {
                    self.reply(ticket, true, "ok", "Answered.");
                } else if let Some(message) = self.settled_sentence(&request) {
                    self.reply(ticket, true, "already", message);
                } else {
                    self.reply(ticket, false, "no_such_request", "Nothing waits under this request; it was answered or has expired.");
                }
            }
            Decide::StopSpeech => {
                self.stop_remote_voice();
                self.cut_speech(CutWhy::Cancelled);
                self.drop_unbegun();
                self.question_was_stopped();
                self.reply(ticket, true, "ok", "Stopped.");
            }
            Decide::StopTurn => {
                self.stop_remote_voice();
                self.stop_turn(CutWhy::Cancelled);
                self.reply(ticket, true, "ok", "The turn was ended.");
                if by.surface == Surface::Voice { self.say_plain("All right, I stopped.") }
            }
        }
    }

    /// Withdraws an open question about approving or leaving. Answers true when there was one.
    pub(super) fn close_plan_question(&mut self, by: &By) -> bool {
        let open = self.question().is_some_and(|q| q.kind != QuestionKind::Tool && q.state.is_open());
        if open {
            self.end_question("withdrawn", by);
        }
        open
    }

    pub(super) fn plan_decided(&mut self, version: u32, status: PlanStatus, by: &By, comments: &str) {
        self.event(EventKind::PlanDecided { version, status, by: by.clone(), comments: comments.to_string() });
    }

    /// A typed chat line: an answer when exactly one request waits, else a line for the agent.
    pub(super) fn on_typed(&mut self, door: OperatorDoor, text: &str, ticket: Ticket) {
        let text = text.trim();
        if text.is_empty() {
            return self.reply(Some(ticket), false, "empty", "There was nothing in the message.");
        }
        let item = self.item();
        let by = door.decide(Decide::StopSpeech, text).by().clone();
        if let (Some(yes), [only]) = (typed_answer(self.language(), text), self.snap.approvals.as_slice()) {
            let request = only.request.clone();
            self.typed_line(text, item, false);
            let done = self.resolve_request(&request, if yes { "approved" } else { "denied" }, &by);
            return self.reply(Some(ticket), done, if done { "ok" } else { "no_such_request" }, "Answered.");
        }
        let command = match meaning_in(self.language(), text) {
            Some(Meaning::Enter) => Some(Decide::Enter { reason: String::new() }),
            Some(Meaning::Stop) => Some(Decide::StopSpeech),
            _ => None,
        };
        self.typed_line(text, item, command.is_none());
        if let Some(decide) = command {
            return self.on_decide(&door.as_surface(Surface::Chat).decide(decide, text), Some(ticket));
        }
        self.new_user_turn();
        self.reply(Some(ticket), true, "ok", "");
    }

    fn typed_line(&mut self, text: &str, item: ItemId, for_agent: bool) {
        self.event(EventKind::Transcript { role: Role::User, text: text.to_string(), item, utterance: None, for_agent, surface: Surface::Chat });
    }
}

/// A short typed yes or no, for the one request that waits.
fn typed_answer(language: Language, text: &str) -> Option<bool> {
    if text.len() > 40 || text.contains('\n') {
        return None;
    }
    let line = words_of(text).join(" ");
    const YES: &[&str] = &["yes", "y", "yep", "yeah", "yup", "go", "go ahead", "yes go ahead", "yes do it", "do it", "ok", "okay", "approved", "approve", "sure", "lgtm", "continue", "allow"];
    const NO: &[&str] = &["no", "n", "nope", "nah", "deny", "denied", "cancel", "stop", "dont", "no thanks", "reject"];
    const JA: &[&str] = &["ja", "j", "ja bitte", "ja gerne", "mach das", "ja mach das", "ja mach es", "ja mach weiter", "ja bitte mach das", "einverstanden", "in ordnung"];
    const NEIN: &[&str] = &["nein", "nee", "nö", "nein danke", "nicht", "bitte nicht", "lass das", "mach das nicht", "abbrechen", "stopp", "halt", "ablehnen", "abgelehnt"];
    if language == Language::German && (JA.contains(&line.as_str()) || NEIN.contains(&line.as_str())) { return Some(JA.contains(&line.as_str())) }
    if YES.contains(&line.as_str()) { Some(true) } else if NO.contains(&line.as_str()) { Some(false) } else { None }
}

fn trimmed(text: &str) -> &str { text.trim().trim_end_matches(['.', '!', '?', ';', ',']) }

fn count_of(n: usize, what: &str) -> String {
    if n == 1 { format!("one {what}") } else { format!("{} {what}s", number_word(n as u32)) }
}
