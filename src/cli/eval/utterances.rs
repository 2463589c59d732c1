//! `voxgate eval utterances`: what each sentence of a table decides, by its words alone.
//!
//! Reads a table, asks the engine and prints. Decides nothing itself and changes nothing.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::engine::intent::{Moment, decide_text};

/// The table to judge.
#[derive(clap::Args, Clone, Debug)]
pub struct UtterancesArgs {
    /// The table; - reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// For `--help`.
pub const AFTER_HELP: &str = "FILE holds a line for each sentence: the kind of moment, a tab, the words. Blank lines and lines that begin with # are\n\
        skipped; columns after the second are not read. Each line comes out as kind, tab, words, tab, decision, in the same order.\n\n\
        Kinds:\n  \
        intent   nothing is open, plan mode is on\n  \
        consent  a tool's question is open and was heard\n  \
        review   plans one and two exist, plan two waits\n  \
        confirm  the question about plan two is open and was heard\n  \
        leave    the question about leaving plan mode is open and was heard\n\n\
        Example:\n  printf 'consent\\tYes, go ahead.\\n' | voxgate eval utterances -";

/// Does what was asked. Exit 0: every line was judged; 2: the file or a line of it is wrong, told on stderr, and nothing was printed.
pub fn run(args: &UtterancesArgs) -> ExitCode {
    let file = &args.file;
    let judged = read(file).and_then(|bytes| judge(&bytes).map_err(|line| format!("{}:{line}", file.display())));
    match judged {
        Ok(lines) => {
            crate::cli::out::put(format_args!("{lines}"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("voxgate: {message}");
            ExitCode::from(2)
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| format!("{} cannot be read: {error}", file.display());
    if file.as_os_str() != "-" {
        return std::fs::read(file).map_err(told);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(told)?;
    Ok(bytes)
}

/// All result lines, or `LINE: what is wrong` of the first line that is no case.
fn judge(bytes: &[u8]) -> Result<String, String> {
    let mut out = String::new();
    for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |what: String| format!("{}: {what}", n + 1);
        let line = std::str::from_utf8(line).map_err(|_| wrong("this is not UTF-8 text".into()))?;
        let line = line.trim_start_matches('\u{feff}').trim_end_matches('\r');
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let mut columns = line.split('\t');
        let (Some(kind), Some(utterance)) = (columns.next(), columns.next()) else {
            return Err(wrong(format!("there is no tab between kind and words: {}", clipped(line))));
        };
        let Some(moment) = Moment::of_kind(kind) else {
            return Err(wrong(format!("{} is no kind; there are intent, consent, review, confirm and leave", clipped(kind))));
        };
        out.push_str(&format!("{kind}\t{utterance}\t{}\n", decide_text(utterance, &moment).name()));
    }
    Ok(out)
}

fn clipped(text: &str) -> String { format!("{:?}", text.chars().take(60).collect::<String>()) }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_in_order_with_their_decisions() {
        let table = "\u{feff}# head\n\nconsent\tYes, go ahead.\r\n  # more\nintent\tEnter plan mode.\tcolumn three\nleave\t\nconfirm\tconfirm plan two";
        let told = "consent\tYes, go ahead.\tapprove\nintent\tEnter plan mode.\tenter\nleave\t\tneither\nconfirm\tconfirm plan two\tapprove\n";
        assert_eq!(judge(table.as_bytes()).as_deref(), Ok(told));
    }

    #[test]
    fn a_wrong_line_is_named_and_nothing_comes_out() {
        let told = |table: &[u8]| judge(table).err().unwrap_or_default();
        assert!(told(b"intent\tstop\n\nplan\tstop\n").starts_with("3: \"plan\" is no kind"));
        assert!(told(b"intent stop").starts_with("1: there is no tab"));
        assert!(told(b"intent\tstop\nintent\t\xff\n").starts_with("2: this is not UTF-8"));
    }
}
