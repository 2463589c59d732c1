//! One line for each stage of plan mode, the same for people and for agents: what a mirror writes into its chat and what the
//! agent's note begins with. Pure; `dialect` puts it into frames and requests.

use super::authority::{By, Surface};
use super::event::EventKind;
use super::mode::{AskPolicy, Posture, shown_mode};
use super::plan::PlanStatus;

/// The line of a stage. `None` for everything that is none.
pub fn line(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Mode(mode) if mode.restored => format!("Mode restored: {}.", shown_mode(mode.posture, mode.ask)),
        EventKind::Mode(mode) => {
            let how = if mode.posture == Posture::Plan { "plan mode, nothing is changed" } else { of_ask(mode.ask) };
            format!("Mode changed {}: {how}.", by(&mode.by))
        }
        EventKind::Presented(plan) => format!("Plan {} presented: {}.", plan.version, plan.title.trim_end_matches('.')),
        EventKind::PlanDecided { version, status, by: who, comments } => decided(*version, *status, who, comments)?,
        EventKind::Continued { version, by: who } => format!("Plan {version} continued {}.", by(who)),
        _ => return None,
    })
}

fn of_ask(ask: AskPolicy) -> &'static str {
    match ask {
        AskPolicy::Ask => "default, changes are asked about",
        AskPolicy::Bypass => "bypass, changes are made without asking",
        AskPolicy::Refuse => "autonomous, nobody is asked and what would need asking is refused",
    }
}

fn decided(version: u32, status: PlanStatus, who: &By, comments: &str) -> Option<String> {
    let who = by(who);
    Some(match status {
        PlanStatus::Waiting => format!("Plan {version} back for review {who}."),
        PlanStatus::Approved => format!("Plan {version} approved {who}."),
        PlanStatus::ChangesRequested => match comments.lines().filter(|l| !l.trim().is_empty()).count() {
            0 => format!("Plan {version} sent back {who}, to go on planning."),
            n => format!("Changes to plan {version} requested {who} ({n})."),
        },
        PlanStatus::Dismissed => format!("Plan {version} set aside {who}."),
        PlanStatus::SetAside => format!("Plan {version} set aside, because plan mode was left."),
        PlanStatus::Superseded => format!("Plan {version} superseded by a newer one."),
        PlanStatus::Completed => format!("Plan {version} completed, says the agent: {}", comments.trim()),
        PlanStatus::Closed => format!("Plan {version} marked as done {who}."),
    })
}

/// "by voice", "on a screen": who, in two or three words.
pub fn by(who: &By) -> &'static str {
    match who.surface {
        Surface::Voice => "by voice",
        Surface::Screen => "on a screen",
        Surface::Chat => "in a chat",
        Surface::Rest => "by REST",
        Surface::Client => "by a client",
        Surface::Gateway => "by the gateway",
        Surface::Agent => "by the agent",
        Surface::Provider => "by the provider",
    }
}

/// How long ago that was, in words.
pub fn ago(ms: u64) -> String {
    let (n, unit) = match ms / 1_000 {
        s if s < 60 => (s, "second"),
        s if s < 3_600 => (s / 60, "minute"),
        s if s < 86_400 => (s / 3_600, "hour"),
        s => (s / 86_400, "day"),
    };
    format!("{n} {unit}{} ago", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::event::{ModeEvent, VoiceState};
    use super::super::plan::PlanVersion;
    use super::*;

    fn voice() -> By { By { surface: Surface::Voice, ..By::gateway() } }

    #[test]
    fn ledger_l68_every_stage_is_one_line_and_only_stages_are() {
        let mode = |posture, ask, restored| EventKind::Mode(ModeEvent { posture, ask, epoch: 1, draining: 0, restored, reason: String::new(), by: voice(), approved: None });
        let decided = |status, comments: &str| EventKind::PlanDecided { version: 2, status, by: voice(), comments: comments.into() };
        let cases = [
            (mode(Posture::Plan, AskPolicy::Ask, false), "Mode changed by voice: plan mode, nothing is changed."),
            (mode(Posture::Default, AskPolicy::Bypass, false), "Mode changed by voice: bypass, changes are made without asking."),
            (mode(Posture::Plan, AskPolicy::Ask, true), "Mode restored: plan."),
            (EventKind::Presented(PlanVersion { version: 2, title: "Shop.".into(), ..PlanVersion::default() }), "Plan 2 presented: Shop."),
            (decided(PlanStatus::ChangesRequested, "one\ntwo"), "Changes to plan 2 requested by voice (2)."),
            (decided(PlanStatus::ChangesRequested, ""), "Plan 2 sent back by voice, to go on planning."),
            (decided(PlanStatus::Approved, ""), "Plan 2 approved by voice."),
            (decided(PlanStatus::Dismissed, ""), "Plan 2 set aside by voice."),
            (decided(PlanStatus::SetAside, ""), "Plan 2 set aside, because plan mode was left."),
            (decided(PlanStatus::Waiting, ""), "Plan 2 back for review by voice."),
            (decided(PlanStatus::Superseded, ""), "Plan 2 superseded by a newer one."),
            (decided(PlanStatus::Completed, "All bought."), "Plan 2 completed, says the agent: All bought."),
            (decided(PlanStatus::Closed, ""), "Plan 2 marked as done by voice."),
            (EventKind::Continued { version: 2, by: voice() }, "Plan 2 continued by voice."),
        ];
        for (kind, expected) in cases {
            assert_eq!(line(&kind).as_deref(), Some(expected));
        }
        assert_eq!(line(&EventKind::Voice(VoiceState::Idle)), None);
        assert_eq!(line(&EventKind::Notice { code: "x".into(), message: "y".into() }), None);
    }

    #[test]
    fn times_are_told_in_words() {
        assert_eq!([ago(0), ago(1_999), ago(59_999), ago(60_000), ago(7_200_000), ago(86_400_000)], ["0 seconds ago", "1 second ago", "59 seconds ago", "1 minute ago", "2 hours ago", "1 day ago"]);
    }
}
