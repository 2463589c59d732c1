//! Changes of mode: entering at once, loosening only once it is written down, and taking back what was loosened in haste.

use super::super::authority::{By, Decide, Surface, UserAction};
use super::super::event::EventKind;
use super::super::grammar::number_word;
use super::super::id::Ms;
use super::super::input::{Action, Ticket};
use super::super::mode::{AskPolicy, Mode, Posture};
use super::super::plan::PlanStatus;
use super::speak::Purpose;
use super::{Engine, TAKE_BACK_MS};
use crate::media::earcon::Earcon;

impl Engine {
    /// The posture turns at once: nothing that has not begun will.
    pub(super) fn enter_plan(&mut self, reason: &str, by: &By) {
        if self.snap.in_plan() && !self.loosening {
            // Staying is an answer too: whoever asks for plan mode now means no to leaving and to approving.
            if self.close_plan_question(by) {
                self.cut_question();
                self.say_plain("All right. Plan mode stays on.");
            } else if by.surface == Surface::Voice {
                self.say(Purpose::Mode, "Plan mode is already on.".into(), None);
            }
            return;
        }
        let (_, running) = self.gate.flip(Posture::Plan);
        self.loosening = false;
        self.after_loosening = None;
        self.act(Action::Earcon(Earcon::Enter));
        self.event(EventKind::Mode(super::ModeEvent {
            posture: Posture::Plan, ask: self.snap.ask, epoch: self.gate.stamp().epoch, draining: running, restored: false, reason: reason.to_string(), by: by.clone(), approved: None,
        }));
        self.rejudge_all();
        let aside = self.snap.newest().filter(|p| p.status == PlanStatus::SetAside).map(|p| p.version);
        if let Some(version) = aside {
            self.plan_decided(version, PlanStatus::Waiting, &By::gateway(), "");
        }
        let still = match running { 0 => String::new(), 1 => " One action was already running; I say when it has ended.".into(), n => format!(" {} actions were already running.", number_word(n)) };
        self.say(Purpose::Mode, format!("Plan mode is on. I can look, but I change nothing until you approve a plan.{still}"), None);
    }

    pub(super) fn leave(&mut self, by: &By, ticket: Option<Ticket>) {
        if !self.snap.in_plan() {
            self.reply(ticket, false, "not_in_plan_mode", "Plan mode is off already.");
            return;
        }
        self.close_plan_question(by);
        if let Some(version) = self.snap.waiting().map(|p| p.version) {
            self.plan_decided(version, PlanStatus::SetAside, by, "");
        }
        // What was chosen on a screen stays, a voice leads to default and nowhere else.
        let ask = if by.has_screen() { self.snap.ask } else { AskPolicy::Ask };
        self.loosen(Posture::Default, ask, by, Some(false), AfterLoosening::Left);
        self.hold_if_spoken(by, None);
        self.reply(ticket, true, "ok", "Plan mode is off.");
    }

    /// Approves a version; it is carried out in default.
    pub(super) fn approve(&mut self, version: Option<u32>, hash: Option<&str>, by: &By, ticket: Option<Ticket>) { self.approve_in(version, hash, Mode::Default, by, ticket) }

    /// Approves a version and then sets the mode it is carried out in. A voice, and an organisation that forbids the others, lead to
    /// default.
    pub(super) fn approve_in(&mut self, version: Option<u32>, hash: Option<&str>, mode: Mode, by: &By, ticket: Option<Ticket>) {
        let waiting = self.snap.waiting().cloned();
        let Some(version) = version.or(waiting.as_ref().map(|p| p.version).filter(|_| self.one_presented())) else {
            return match waiting {
                Some(_) => self.reply(ticket, false, "which_version", "Name the version: there is not exactly one that waits."),
                None => self.reply(ticket, false, "no_such_version", "No plan waits for a decision."),
            };
        };
        match self.snap.version(version).map(|p| (p.status, p.hash.clone())) {
            None => return self.reply(ticket, false, "no_such_version", self.no_plan(version)),
            Some((PlanStatus::Approved | PlanStatus::Completed | PlanStatus::Closed, _)) => return self.say_already(version, ticket),
            Some((PlanStatus::Waiting, real)) if hash.is_some_and(|h| h != real) => return self.reply(ticket, false, "plan_changed", "The plan is not the one you saw; read it again."),
            Some((PlanStatus::Waiting, _)) => {}
            Some(_) => {
                let message = format!("{} Take it back to review before it can be approved.", self.decided_sentence(version));
                return self.reply(ticket, false, "not_waiting", message);
            }
        }
        self.close_plan_question(by);
        // One plan is carried out at a time: the newer takes the place of the older.
        let older: Vec<u32> = self.snap.plans.iter().filter(|p| p.status == PlanStatus::Approved).map(|p| p.version).collect();
        older.into_iter().for_each(|n| self.plan_decided(n, PlanStatus::Superseded, by, ""));
        self.plan_decided(version, PlanStatus::Approved, by, "");
        let loose = mode.ask().filter(|_| mode.is_loose() && self.config.loose_modes && by.has_screen());
        let carried_out = loose.map_or(String::new(), |_| format!(", to be carried out in {}", mode.word()));
        if self.snap.in_plan() {
            // First the plan, then the mode: where it is a loose one, that is a decision and an event of its own.
            if loose.is_some() {
                self.mode_event(Posture::Default, AskPolicy::Ask, String::new(), by.clone(), Some(true), false);
            }
            self.loosen(Posture::Default, loose.unwrap_or_default(), by, Some(true), AfterLoosening::Approved(version));
        } else {
            if let Some(ask) = loose.filter(|ask| *ask != self.snap.ask) {
                self.loosen(Posture::Default, ask, by, None, AfterLoosening::Asks);
            }
            self.say_approved(version);
        }
        self.hold_if_spoken(by, Some(version));
        self.reply(ticket, true, "ok", format!("Plan {version} is approved{carried_out}."));
    }

    /// What was loosened by voice lets nothing begin while going on speaking would take it back.
    fn hold_if_spoken(&mut self, by: &By, approved: Option<u32>) {
        if by.surface == Surface::Voice {
            self.lane.hold(self.now + TAKE_BACK_MS.saturating_sub(self.config.ear.loosen_silence_ms), approved);
        }
    }

    /// Exactly one version was presented since the last decision, and it waits.
    fn one_presented(&self) -> bool { self.snap.plans.iter().filter(|p| p.status == PlanStatus::Waiting).count() == 1 && self.snap.plans.iter().rev().take_while(|p| !matches!(p.status, PlanStatus::Approved)).filter(|p| p.status != PlanStatus::Waiting).all(|p| matches!(p.status, PlanStatus::SetAside | PlanStatus::Dismissed | PlanStatus::Completed | PlanStatus::Closed)) }

    /// Log first, then the gate: the driver turns it once the event is written.
    fn loosen(&mut self, posture: Posture, ask: AskPolicy, by: &By, approved: Option<bool>, after: AfterLoosening) {
        let reason = if posture == Posture::Plan { self.snap.entered_reason.clone() } else { String::new() };
        self.mode_event(posture, ask, reason, by.clone(), approved, false);
        self.loosening = true;
        self.after_loosening = Some(after);
        self.act(Action::Loosen(posture));
    }

    /// Chooses a mode of the list. Plan and default write the posture (default also goes back to asking), the loose ones write the ask
    /// policy alone; the global level of autonomy is never touched.
    pub(super) fn set_mode(&mut self, mode: Mode, by: &By, ticket: Option<Ticket>) {
        match mode {
            Mode::Custom => self.reply(ticket, false, "not_a_mode", "Custom can be shown and not chosen; choose default, plan, bypass or autonomous."),
            Mode::Plan => self.on_decide(&UserAction { decide: Decide::Enter { reason: String::new() }, by: by.clone() }, ticket),
            Mode::Default => self.set_default(by, ticket),
            Mode::Bypass | Mode::Autonomous => self.set_loose(mode, by, ticket),
        }
    }

    /// Asking again holds at once; leaving plan mode takes its own way.
    fn set_default(&mut self, by: &By, ticket: Option<Ticket>) {
        let asks_again = self.snap.ask != AskPolicy::Ask;
        if asks_again {
            let (posture, reason) = (self.snap.stamp.posture, self.snap.entered_reason.clone());
            self.mode_event(posture, AskPolicy::Ask, reason, by.clone(), None, false);
        }
        if self.snap.in_plan() {
            self.leave(by, ticket);
        } else if asks_again {
            self.say(Purpose::Mode, "I ask before I change something again.".into(), None);
            self.reply(ticket, true, "ok", "The mode is default: changes are asked about.");
        } else {
            self.reply(ticket, true, "already", "The mode was default already.");
        }
    }

    fn set_loose(&mut self, mode: Mode, by: &By, ticket: Option<Ticket>) {
        let Some(ask) = mode.ask() else { return };
        if !by.has_screen() {
            return self.reply(ticket, false, "screen_only", "Bypass and autonomous are chosen on a screen, never by voice or by a client.");
        }
        if !self.config.loose_modes {
            return self.reply(ticket, false, "mode_forbidden", format!("The settings of this gateway forbid {}; choose default or plan.", mode.word()));
        }
        if self.snap.ask == ask {
            return self.reply(ticket, true, "already", format!("The mode was {} already.", mode.word()));
        }
        if self.loosening {
            return self.reply(ticket, false, "busy", "A change of mode is being written down; try again.");
        }
        let posture = self.snap.stamp.posture;
        self.loosen(posture, ask, by, None, AfterLoosening::Asks);
        let shown = Mode::of(posture, ask);
        let stays = if shown == Mode::Custom { " Plan mode stays on until it is left." } else { "" };
        self.reply(ticket, true, "ok", format!("{}{stays}", mode.about()));
    }

    /// A new conversation of an operator whose settings start it in a loose mode. Logged before it holds, as every loosening.
    pub(super) fn start_loose(&mut self) {
        let ask = self.config.start_ask;
        if ask != AskPolicy::Ask && self.config.loose_modes {
            self.loosen(Posture::Default, ask, &By::gateway(), None, AfterLoosening::Asks);
        }
    }

    pub(super) fn on_loosened(&mut self) {
        if !std::mem::take(&mut self.loosening) {
            return;
        }
        self.act(Action::Earcon(Earcon::Leave));
        match self.after_loosening.take() {
            Some(AfterLoosening::Approved(version)) => self.say_approved(version),
            Some(AfterLoosening::Asks) if self.snap.in_plan() => {}
            Some(AfterLoosening::Left | AfterLoosening::Asks) | None => {
                let text = self.status_sentence();
                self.say(Purpose::Mode, text, None);
            }
        }
    }

    fn say_approved(&mut self, version: u32) {
        let n = number_word(version);
        let asks = match self.snap.ask {
            AskPolicy::Ask => "I still ask before each change.",
            AskPolicy::Bypass => "As you chose on the screen, I do not ask before each change.",
            AskPolicy::Refuse => "As you chose on the screen, nobody is asked.",
        };
        self.say(Purpose::Mode, format!("Plan {n} is approved and plan mode is off. {asks}"), None);
        self.queue_turn(None);
    }

    pub(super) fn on_log_failed(&mut self) {
        self.loosening = false;
        let after = self.after_loosening.take();
        if matches!(after, Some(AfterLoosening::Asks)) && !self.snap.in_plan() {
            // Nothing was turned at the gate: only the asking goes on.
            self.mode_event(Posture::Default, AskPolicy::Ask, String::new(), By::gateway(), None, false);
            self.notice("log_failed", "The change of mode could not be written to the log, so changes are asked about as before. Check the disk of the data folder.");
            return self.say_plain("I could not write that down, so I ask as before.");
        }
        self.gate.flip(Posture::Plan);
        self.mode_event(Posture::Plan, AskPolicy::Ask, "the change could not be written down".into(), By::gateway(), None, false);
        // What was decided with it does not hold either: the version waits again.
        let undone = match after {
            Some(AfterLoosening::Approved(version)) => Some(version),
            Some(AfterLoosening::Left) => self.snap.newest().filter(|p| p.status == PlanStatus::SetAside).map(|p| p.version),
            Some(AfterLoosening::Asks) | None => None,
        };
        if let Some(version) = undone {
            self.plan_decided(version, PlanStatus::Waiting, &By::gateway(), "");
        }
        self.notice("log_failed", "The change of mode could not be written to the log, so plan mode stays on. Check the disk of the data folder.");
        self.say_plain("I could not write that down, so plan mode stays on.");
    }

    /// Speech went on right after a loosening: nothing has begun, so it is taken back.
    pub(super) fn take_back_if_hasty(&mut self, began_at: Ms) {
        let Some((approved, _)) = self.lane.hasty.take_if(|(_, until)| began_at <= *until) else { return };
        if let Some(version) = approved {
            self.abandon_turn(super::super::input::TurnEnd::Interrupted);
            self.enter_plan("speech went on right after the approval", &By::gateway());
            self.plan_decided(version, PlanStatus::Waiting, &By::gateway(), "");
            return self.say_plain("You went on speaking, so I took the approval back. Plan mode is on.");
        }
        self.enter_plan("speech went on right after plan mode was left", &By::gateway());
    }
}

/// What happens once a loosening is in the log.
#[derive(Debug)]
pub(super) enum AfterLoosening {
    /// This version was approved: the agent carries it out.
    Approved(u32),
    /// Plan mode was left.
    Left,
    /// The ask policy was loosened; the posture is as it was.
    Asks,
}
