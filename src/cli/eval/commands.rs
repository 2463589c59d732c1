//! `voxgate eval commands`: spoken commands, consents, denials and near misses, through the product's own ear and judge.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cli::setup::{Place as Setup, Trouble, logged};
use crate::engine::grammar::phrase_table;
use crate::engine::intent::{RULES, Rule, Rules, followed_below};
use crate::eval::clips::Place;
use crate::eval::commands::{Hearings, Verdict, clips_of, trials};
use crate::eval::figures;
use crate::eval::report;
use crate::eval::voices::{Clips, cache_dir, choose};
use crate::models::{read_checked, sha256_hex};
use crate::stt::{self, PoolConfig, WhisperPool};

/// A machine that does other work as well may be slow; nothing is lost by waiting.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);
/// Nats further than in the product, so that rules can be judged again without hearing again.
const WIDER: f32 = 2.0;

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub struct CommandsArgs {
    /// Voices; all where none is named
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub voices: Vec<String>,
    /// A few sentences in the voices that are quick to make
    #[arg(long)]
    pub quick: bool,
    /// Only make the clips
    #[arg(long)]
    pub clips: bool,
    /// Only these sorts: tightening, loosening, consent, denial, near, clipped
    #[arg(long, value_name = "SORT", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Hear at most so many trials that are not kept yet
    #[arg(long, value_name = "N")]
    pub most: Option<usize>,
    /// Judge what is kept and hear nothing
    #[arg(long)]
    pub kept: bool,
    /// Print every trial that went wrong
    #[arg(long)]
    pub wrong: bool,
    /// Judge by the rules in this JSON file: {"consent": [relative, floor, lead], "opposed": nats, ...}
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Write the figures into this project's docs
    #[arg(long, value_name = "FOLDER")]
    pub publish: Option<PathBuf>,
}

/// Does what was asked.
///
/// # Errors
/// [`Trouble`]: a voice, a model or the recogniser is missing, with what brings it; in a quick run also a figure out of its bounds.
pub fn run(args: &CommandsArgs, place: &Setup) -> Result<ExitCode, Trouble> {
    logged(measure(args, place))
}

async fn measure(args: &CommandsArgs, place: &Setup) -> Result<ExitCode, Trouble> {
    let voices = choose(&args.voices).map_err(Trouble::wrong)?;
    let voices: Vec<_> = voices.into_iter().filter(|v| !args.quick || v.is_quick()).collect();
    let folder = cache_dir().map_err(Trouble::failed)?;
    let clips = Clips::new(&folder, &place.models);
    let mut trials = trials(&voices, args.quick);
    if !args.only.is_empty() { trials.retain(|t| args.only.contains(&format!("{:?}", t.case.sort).to_lowercase())) }
    if args.clips {
        let wanted = clips_of(&trials);
        for (voice, text) in wanted.iter().filter(|(v, _)| v.engine != crate::eval::voices::Engine::Kokoro) {
            clips.say(voice, text).map_err(Trouble::failed)?;
        }
        eprintln!("the quick clips are there");
        let made = clips.bring(&wanted).map_err(Trouble::failed)?;
        eprintln!("{made} clips made of Kokoro's");
        return Ok(ExitCode::SUCCESS);
    }
    let (table, model) = (phrase_table(), place.listener_model()?);
    let margins: Vec<f32> = table.iter().map(|s| followed_below(s.meaning.class()) + WIDER).collect();
    let phrases: Vec<_> = table.iter().map(|s| s.phrase.clone()).collect();
    let checked = read_checked(&model).map_err(Trouble::failed)?;
    let parameters = format!("{} {} en {} {phrases:?} {margins:?}", checked.sha256, stt::REVISION, place.config.listen.vad);
    let mut hearings = Hearings::open(&folder, &parameters);
    if args.kept {
        eprintln!("{} of {} trials are kept ({})", hearings.known(&trials), trials.len(), &sha256_hex(parameters.as_bytes())[..16]);
    } else {
        if let Some(most) = args.most { trials.truncate(most) }
        clips.bring(&clips_of(&trials)).map_err(Trouble::failed)?;
        let program = std::env::current_exe().map_err(Trouble::failed)?;
        let pool = WhisperPool::start(PoolConfig { margins, patience: PATIENCE, ..PoolConfig::new(program, model, phrases) }).await.map_err(Trouble::failed)?;
        let told = |n: usize, of: usize| if n % 100 == 0 { eprintln!("{n} of {of} heard") };
        hearings.hear(&trials, &clips, &place.vad(), &pool, told).await.map_err(Trouble::failed)?;
        pool.shutdown().await;
    }
    let rules = args.rules.as_deref().map_or(Ok(RULES), rules_of).map_err(Trouble::wrong)?;
    let verdicts = hearings.judge(&trials, &table, &rules);
    for line in report::lines(&verdicts) { outln!("{line}") }
    if args.wrong { for line in report::wrong(&verdicts) { outln!("{line}") } }
    if let Some(project) = &args.publish {
        let machine = figures::machine(&place.config.stt.model);
        for figure in report::figures(&verdicts, trials.len(), &machine) { figures::publish(project, &figure).map_err(Trouble::failed)? }
    }
    if args.quick { bounds(&verdicts).map_err(Trouble::failed)? }
    Ok(ExitCode::SUCCESS)
}

/// The rules of a file; what it does not name stays as it is.
fn rules_of(file: &Path) -> Result<Rules, String> {
    let told = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| told(&e))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| told(&e))?;
    let mut rules = RULES;
    let rows = [
        ("harmless", &mut rules.harmless), ("loosening", &mut rules.loosening), ("loosening_faint", &mut rules.loosening_faint), ("consent", &mut rules.consent),
        ("consent_faint", &mut rules.consent_faint), ("consent_short", &mut rules.consent_short), ("denial", &mut rules.denial), ("denial_asked", &mut rules.denial_asked), ("other", &mut rules.other),
    ];
    for (name, rule) in rows {
        let [relative, floor, lead] = [0, 1, 2].map(|n| json[name][n].as_f64().map(|x| x as f32));
        if let (Some(relative), Some(floor), Some(lead)) = (relative, floor, lead) { *rule = Rule { relative, floor, lead } }
    }
    if let Some(x) = json["opposed"].as_f64() { rules.opposed = x as f32 }
    if let Some(x) = json["short_no_speech"].as_f64() { rules.short_no_speech = x as f32 }
    if let Some(x) = json["no_speech"].as_f64() { rules.no_speech = x as f32 }
    if let Some(x) = json["tokens"].as_u64() { rules.tokens = x as u32 }
    Ok(rules)
}

/// What a quick run must keep, or the command fails.
fn bounds(all: &[Verdict]) -> Result<(), String> {
    let loosened: Vec<_> = all.iter().filter(|v| v.loosened).collect();
    if let Some(v) = loosened.first() { return Err(format!("{} of {} trials loosened that must not, first {} by {}: {}", loosened.len(), all.len(), v.trial.case.text, v.trial.voice.name, v.text)) }
    let wanted: Vec<_> = all.iter().filter(|v| !v.trial.case.right.is_empty()).collect();
    for (place, percent) in QUICK_MISSED_PERCENT {
        let here: Vec<_> = wanted.iter().filter(|v| (v.trial.place == Place::Clean) == (*place == "clean")).collect();
        let (missed, most) = (here.iter().filter(|v| !v.right).count(), here.len() * percent / 100);
        if missed > most { return Err(format!("{missed} of {} sentences were missed ({place}); at most {most} may be", here.len())) }
    }
    Ok(())
}

/// The quick voices are mostly old ones, and babble of 10 dB is much for them: measured 0 of 20 clean and 7 of 16 in it.
const QUICK_MISSED_PERCENT: &[(&str, usize)] = &[("clean", 10), ("babble", 65)];
