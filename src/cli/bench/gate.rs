//! `voxgate bench gate`: how long the gate takes for a verdict, by what the call is and what the mode is.
//!
//! Measures `Gate::judge` and `Gate::begin` as the loop and the runner call them. Needs no ears, no voice and no model.

use std::hint::black_box;
use std::process::ExitCode;

use std::time::Instant;

use serde_json::json;

use super::{PublishArgs, show};
use crate::cli::setup::Trouble;
use crate::engine::gate::{Gate, Policy, Verdict};
use crate::engine::mode::{Autonomy, Posture, Stamp};
use crate::engine::tool::{Effect, ToolCall, ToolSpec};
use crate::eval::figures::{Figure, Row, machine};

/// How much is measured.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct GateArgs {
    /// Where the figure goes
    #[command(flatten)]
    pub publish: PublishArgs,
}

/// Verdicts of one measured stretch; a single one is shorter than the clock's grain.
const STRETCH: usize = 200;
/// Stretches of each case; the median of them is told.
const STRETCHES: usize = 500;
const AIM_NS: f64 = 1_000.0;

struct Case {
    what: &'static str,
    effect: Effect,
    posture: Posture,
    known: bool,
    begins: bool,
}

const CASES: &[Case] = &[
    Case { what: "a reading call in plan mode: let through", effect: Effect::Read, posture: Posture::Plan, known: true, begins: false },
    Case { what: "a writing call in plan mode: refused", effect: Effect::Files, posture: Posture::Plan, known: true, begins: false },
    Case { what: "a writing call in default: asked about", effect: Effect::Files, posture: Posture::Default, known: true, begins: false },
    Case { what: "an unknown tool in plan mode: refused", effect: Effect::Unknown, posture: Posture::Plan, known: false, begins: false },
    Case { what: "a reading call judged and begun", effect: Effect::Read, posture: Posture::Plan, known: true, begins: true },
];

/// Measures, prints, publishes.
///
/// # Errors
/// [`Trouble`] when the figure cannot be written.
pub fn run(args: &GateArgs) -> Result<ExitCode, Trouble> {
    let mut times: Vec<(&Case, [f64; 2])> = CASES.iter().map(|case| (case, measure(case))).collect();
    times.sort_by(|a, b| b.1[0].total_cmp(&a.1[0]));
    // A verdict is `judge`; beginning is the runner's, and reported beside it.
    let slowest = times.iter().find(|(case, _)| !case.begins).map_or(0.0, |(_, [median, _])| *median);
    let mut rows = vec![Row::told("slowest verdict, median", format!("{slowest:.0} ns")).number("ns", slowest).aim("at most 1000 ns", slowest <= AIM_NS)];
    rows.extend(times.iter().map(|(case, [median, late])| Row::told(case.what, format!("{median:.0} ns, 99 in 100 under {late:.0} ns")).number("ns", *median).number("p99_ns", *late)));
    let figure = Figure {
        name: "gate".into(), title: "The gate's verdict".into(), command: "voxgate bench gate --publish .".into(), machine: machine(build()),
        method: format!("{STRETCHES} stretches of {STRETCH} verdicts of each kind; a verdict hashes the call's arguments where it is let through."), rows, notes: Vec::new(),
    };
    show(&figure, &args.publish)?;
    Ok(ExitCode::SUCCESS)
}

fn build() -> &'static str { if cfg!(debug_assertions) { "the development build" } else { "the release build" } }

/// Median and 99th percentile, in nanoseconds of one verdict.
fn measure(case: &Case) -> [f64; 2] {
    let gate = Gate::new(Stamp { epoch: 1, posture: case.posture });
    let spec = ToolSpec {
        name: "notes__add".into(), description: String::new(), effect: case.effect, tier: None, irreversible: false, needs_person: false, ask: None, step: None, display: "notes: add".into(),
        parameters: json!({"type": "object", "properties": {"text": {"type": "string"}, "path": {"type": "string", "format": "path"}}}),
    };
    let call = ToolCall { id: "call_1".into(), tool: spec.name.clone(), arguments: json!({"text": "buy milk and bread", "path": "lists/today.txt"}), stamp: gate.stamp() };
    let policy = Policy { autonomy: Autonomy::Hybrid, ..Policy::default() };
    let once = || match gate.judge(black_box(&call), case.known.then_some(&spec), policy, None) {
        Verdict::Allow(permit) if case.begins => drop(black_box(gate.begin(permit, &call))),
        verdict => drop(black_box(verdict)),
    };
    let stretch = || {
        let began = Instant::now();
        for _ in 0..STRETCH { once() }
        began.elapsed().as_nanos() as f64 / STRETCH as f64
    };
    // The first stretches warm the caches.
    for _ in 0..20 { stretch(); }
    let mut all: Vec<f64> = (0..STRETCHES).map(|_| stretch()).collect();
    all.sort_by(f64::total_cmp);
    [all[STRETCHES / 2], all[STRETCHES * 99 / 100]]
}
