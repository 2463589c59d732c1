//! `voxgate keys`: named keys of clients, added and revoked. Works beside a gateway that runs, which notices within a second.

use std::process::ExitCode;

use clap::Subcommand;

use super::setup::{Place, Trouble};
use crate::session::clock::unix_ms;
use crate::store::keys::Keys;

/// Add, list and revoke the keys of clients.
#[derive(Clone, Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key for a client and print it, once: only its SHA-256 is kept
    #[command(after_help = "The key opens /v1/realtime and nothing else.\n\nExample:\n  export OPENAI_API_KEY=$(voxgate keys add kitchen)")]
    Add {
        /// The client's name: letters, digits, - and _
        name: String,
    },
    /// Show the clients that have a key
    List,
    /// Take a client's key away; its sockets are cut within a second, and so are those of secrets it asked for
    Revoke {
        /// As `voxgate keys list` shows it
        name: String,
    },
}

/// Does what was asked. The key goes to stdout, everything else that `add` says to stderr.
///
/// # Errors
/// [`Trouble`].
pub fn run(command: KeysCommand, place: &Place) -> Result<ExitCode, Trouble> {
    place.home.create().map_err(Trouble::failed)?;
    // Whoever adds the first client by hand has the machine's own one as well.
    let keys = Keys::load_or_create(&place.home).map_err(Trouble::failed)?;
    match command {
        KeysCommand::Add { name } => {
            let key = Keys::add(&place.home, &name, unix_ms() / 1_000).map_err(Trouble::wrong)?;
            outln!("{}", key.expose());
            eprintln!("voxgate: this is the key of {name}; it is shown this once and kept nowhere");
        }
        KeysCommand::List => {
            for client in keys.list() {
                let kept = if client.kept { format!("its key lies in {}", place.home.keys_dir().join("clients").join(&client.name).display()) } else { "only its SHA-256 is kept".into() };
                let added = client.added_s.map_or_else(String::new, |s| format!(", added {}", day(s)));
                outln!("{:24} {kept}{added}", client.name);
            }
        }
        KeysCommand::Revoke { name } => {
            if !Keys::revoke(&place.home, &name).map_err(Trouble::failed)? { return Err(Trouble::wrong(format!("there is no client {name}; `voxgate keys list` shows those there are"))) }
            eprintln!("voxgate: {name} is revoked");
            if keys.list().len() == 1 { eprintln!("voxgate: no client is left; the next start makes `default` anew, with another key") }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Unix seconds as a day of the Gregorian calendar, UTC.
fn day(unix_s: u64) -> String {
    // Counted from 1 March of the year 0, so that a leap day is the last of its year.
    let days = unix_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_the_calendars() {
        assert_eq!([day(0), day(951_782_400), day(1_709_164_800), day(1_709_251_199), day(1_767_225_599), day(4_107_542_400)], ["1970-01-01", "2000-02-29", "2024-02-29", "2024-02-29", "2025-12-31", "2100-03-01"].map(String::from));
    }
}
