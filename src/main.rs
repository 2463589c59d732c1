//! The binary: reads the command line and hands over to the rooms.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use voxgate::cli::{self, setup::{AgentArgs, Place, Trouble, logged}};
use voxgate::config::Flag;

/// Speak with an agent that can do things, and keep the say over what it does.
///
/// `voxgate serve` opens a page for your browser; `voxgate talk` uses this machine's microphone. Say "enter plan mode" and
/// nothing is changed until you approve a plan.
#[derive(Parser)]
#[command(name = "voxgate", version)]
struct Arguments {
    /// Configuration file (default: config.toml in the home)
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the page, the mirror, REST and /v1/realtime
    Serve(cli::serve::ServeArgs),
    /// Talk over this machine's microphone and speaker, or over WAV files
    Talk(cli::talk::TalkArgs),
    /// List, bring and check the speech models
    Models {
        #[command(subcommand)]
        command: cli::models::ModelsCommand,
    },
    /// List, show, export and wipe conversations
    Sessions {
        #[command(subcommand)]
        command: cli::sessions::SessionsCommand,
    },
    /// Show a conversation's log record by record, or verify it
    Log {
        #[command(subcommand)]
        command: cli::log::LogCommand,
    },
    /// List microphones and speakers
    Devices {
        /// For another voxgate: a line each, tabs between
        #[arg(long, hide = true)]
        raw: bool,
    },
    /// Say what is missing and the command that mends it
    Doctor(AgentArgs),
    /// Check the configuration, or print an example
    Config {
        #[command(subcommand)]
        command: cli::config_check::ConfigCommand,
    },
    /// Judge files of utterances and sounds with what is built in
    Eval {
        #[command(subcommand)]
        command: cli::eval::EvalCommand,
    },
    /// Measure the stages of a turn on this machine
    Bench {
        #[command(subcommand)]
        command: Option<cli::bench::BenchCommand>,
    },
    /// Add, list and revoke the keys of clients
    Keys {
        #[command(subcommand)]
        command: cli::keys::KeysCommand,
    },
    /// Print another link to the page of the gateway that runs
    Link,
    /// The recogniser's process; started by voxgate itself
    #[cfg(feature = "whisper")]
    #[command(hide = true)]
    Recogniser(voxgate::stt::child::ChildArgs),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(code) => code,
        Err(Trouble { code, message }) => {
            eprintln!("voxgate: {message}");
            ExitCode::from(code)
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode, Trouble> {
    let mut flags: Vec<Flag> = Vec::new();
    let file = arguments.config.as_deref();
    match arguments.command {
        #[cfg(feature = "whisper")]
        Command::Recogniser(args) => Ok(voxgate::stt::child::run_child(&args, |path| {
            let checked = voxgate::models::read_checked(path).map_err(|error| error.to_string())?;
            eprintln!("{} sha256 {} ({})", path.display(), checked.sha256, if checked.pinned { "known" } else { "own file" });
            Ok(checked.bytes)
        })),
        Command::Serve(args) => {
            flags.extend(agent_flags(&args.agent));
            flags.extend([flag("--address", "server.address", args.address), flag("--port", "server.port", args.port)].into_iter().flatten());
            logged(cli::serve::run(Place::find(file, &flags)?))
        }
        Command::Talk(args) => {
            flags.extend(agent_flags(&args.agent));
            // Doors of a talk are its own; a fixed port would clash with a gateway that serves another home.
            flags.extend(flag("--port", "server.port", Some(args.port.unwrap_or(0))));
            flags.extend(flag("--port", "server.tls_port", Some(0)));
            logged(cli::talk::run(Place::find(file, &flags)?, args))
        }
        Command::Models { command } => {
            let variables = voxgate::config::environment();
            let dir = voxgate::config::models_dir(&variables).ok_or_else(|| Trouble::wrong("no folder for models: set VOXGATE_MODELS or HOME"))?;
            cli::models::run(command, &dir).map_err(Trouble::failed)
        }
        Command::Sessions { command } => Ok(cli::sessions::run(command, &Place::find(file, &flags)?.home)),
        Command::Log { command } => Ok(cli::log::run(&command, &Place::find(file, &flags)?.home)),
        Command::Devices { raw } => Ok(cli::devices::run(raw)),
        Command::Doctor(args) => {
            flags.extend(agent_flags(&args));
            let place = Place::find(file, &flags)?;
            logged(async move { Ok(cli::doctor::run(&place).await) })
        }
        Command::Config { command } => {
            let variables = voxgate::config::environment();
            let home = voxgate::store::home::Home::find(|name| voxgate::config::variable(&variables, name)).map_err(Trouble::wrong)?;
            Ok(cli::config_check::run(command, &home, file, &variables, &flags))
        }
        Command::Eval { command } => cli::eval::run(command, || Place::find(file, &flags)),
        Command::Bench { command } => {
            let place = Place::find(file, &flags)?;
            logged(async move { cli::bench::run(&place, command).await })
        }
        Command::Keys { command } => cli::keys::run(command, &Place::find(file, &flags)?),
        Command::Link => {
            let place = Place::find(file, &flags)?;
            logged(async move { cli::link::run(&place).await })
        }
    }
}

fn agent_flags(args: &AgentArgs) -> impl Iterator<Item = Flag> + use<> {
    [flag("--agent", "agent.kind", args.agent.clone()), flag("--base-url", "agent.base_url", args.base_url.clone()), flag("--model", "agent.model", args.model.clone())]
        .into_iter().flatten()
}

fn flag(name: &'static str, key: &'static str, value: Option<impl ToString>) -> Option<Flag> {
    value.map(|v| Flag { name, key, value: v.to_string() })
}
