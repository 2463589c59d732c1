//! What no mode, no rule and no person's yes lets through: the gateway's own folder and control plane, and commands that destroy a
//! machine. Lexical and pure: it stops what is written plainly and promises nothing about what is hidden; executors are confined
//! besides.

use super::facts::Facts;

/// What is guarded in one gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    roots: Vec<String>,
    base: String,
}

impl Guard {
    /// Nothing but what is guarded everywhere.
    pub const fn none() -> Guard { Guard { roots: Vec::new(), base: String::new() } }

    /// Guards these folders (absolute) and everything beneath; a relative path is taken to start at `base`.
    pub fn over<T: AsRef<str>>(roots: &[T], base: &str) -> Guard {
        Guard { roots: roots.iter().map(|r| tidy(r.as_ref())).filter(|r| r.len() > 1).collect(), base: tidy(base) }
    }

    /// Why this call is never let through; `None`: it may be.
    pub fn objects(&self, facts: &Facts) -> Option<&'static str> {
        if facts.paths.iter().any(|p| self.holds(p)) {
            return Some("It names a folder of the gateway itself, which no tool may touch.");
        }
        if facts.urls.iter().any(|u| is_inward(u)) {
            return Some("It names an address of this machine or its network, which no tool may reach.");
        }
        facts.commands.iter().find_map(|c| if self.roots.iter().any(|r| c.contains(r.as_str())) {
            Some("It names a folder of the gateway itself, which no tool may touch.")
        } else {
            catastrophic(c)
        })
    }

    fn holds(&self, path: &str) -> bool {
        let whole = if path.starts_with('/') { tidy(path) } else { tidy(&format!("{}/{path}", self.base)) };
        self.roots.iter().any(|root| whole == *root || whole.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// A path without `.`, `..`, doubled and trailing slashes, as it reads; no file is looked at.
pub fn tidy(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => drop(parts.pop()),
            ".." if absolute => {}
            other => parts.push(other),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

/// True for an address that leads back to this machine or stays in its network, or that cannot be read.
fn is_inward(url: &str) -> bool {
    let lower = url.trim().to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://")) else { return true };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.starts_with('[') {
        // An address of version 6 is not needed for anything public here.
        return true;
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.');
    // A name without a dot is this machine's or its network's.
    if name.ends_with(".localhost") || name.ends_with(".local") || name.ends_with(".internal") || !name.contains('.') {
        return true;
    }
    let parts: Vec<&str> = name.split('.').collect();
    let numeric = |p: &&str| !p.is_empty() && (p.bytes().all(|b| b.is_ascii_digit()) || p.starts_with("0x"));
    if !parts.last().is_some_and(numeric) {
        return false;
    }
    // Numbers: only the four plain ones are an address, every other spelling hides one.
    let octets: Option<Vec<u8>> = parts.iter().map(|p| if p.len() > 1 && p.starts_with('0') { None } else { p.parse().ok() }).collect();
    match octets.as_deref() {
        Some([a, b, _, _]) => matches!((a, b), (0 | 10 | 127 | 224..=255, _) | (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168) | (198, 18 | 19)),
        _ => true,
    }
}

/// Why a command is never run, whatever was allowed. A list, and no more than that: it knows the common ways to destroy a machine.
pub fn catastrophic(command: &str) -> Option<&'static str> {
    let words: Vec<String> = command.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`')).filter(|w| !w.is_empty())
        .map(|w| w.trim_matches(['"', '\'']).to_string()).collect();
    let bare: String = command.chars().filter(|c| !c.is_whitespace()).collect();
    let name = |w: &String| w.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    for (n, word) in words.iter().enumerate() {
        let rest = &words[n + 1..];
        let flag = |letter: char, long: &str| rest.iter().any(|w| w == long || w.starts_with('-') && !w.starts_with("--") && w.to_ascii_lowercase().contains(letter));
        match name(word).as_str() {
            "rm" if flag('r', "--recursive") && rest.iter().any(|w| is_everything(w)) => return Some("It would delete everything."),
            "chmod" | "chown" if flag('r', "--recursive") && rest.iter().any(|w| is_everything(w)) => return Some("It would change the rights of everything."),
            "find" if rest.first().is_some_and(|w| is_everything(w)) && rest.iter().any(|w| w == "-delete") => return Some("It would delete everything."),
            "dd" if rest.iter().any(|w| w.starts_with("of=/dev/") && !w.starts_with("of=/dev/null")) => return Some("It would overwrite a disk."),
            "wipefs" | "blkdiscard" => return Some("It would overwrite a disk."),
            "shred" if rest.iter().any(|w| w.starts_with("/dev/")) => return Some("It would overwrite a disk."),
            // Wherever the word stands: "systemctl poweroff" holds it too.
            "shutdown" | "reboot" | "halt" | "poweroff" => return Some("It would turn the machine off."),
            "init" | "telinit" if rest.first().is_some_and(|w| w == "0" || w == "6") => return Some("It would turn the machine off."),
            "kill" if rest.iter().any(|w| w == "-1") && rest.iter().any(|w| w.starts_with("-9") || w.eq_ignore_ascii_case("-kill")) => return Some("It would end every process."),
            program if program.starts_with("mkfs") => return Some("It would overwrite a disk."),
            _ => {}
        }
    }
    if bare.contains(":(){:|:&};:") {
        return Some("It would start processes without end.");
    }
    let onto_disk = ["sd", "nvme", "vd", "hd", "mmcblk"].iter().any(|disk| bare.contains(&format!(">/dev/{disk}")));
    onto_disk.then_some("It would overwrite a disk.")
}

/// The root, the home folder, or one of the folders a machine cannot be without.
fn is_everything(path: &str) -> bool {
    let path = path.trim_end_matches("/*").trim_end_matches("/.");
    let tidied = tidy(path);
    let top = ["/", "", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/sys", "/usr", "/var"];
    let home = ["~", "$HOME", "${HOME}"].contains(&path.trim_end_matches('/'));
    home || path == "*" || (path.starts_with('/') || path.is_empty()) && top.contains(&tidied.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::tool::Effect;
    use super::*;

    fn facts(paths: &[&str], commands: &[&str], urls: &[&str]) -> Facts {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_string()).collect();
        Facts { effect: Effect::Read, irreversible: false, needs_person: false, paths: own(paths), commands: own(commands), urls: own(urls) }
    }

    #[test]
    fn ledger_l8_the_gateways_own_folder_is_guarded_however_it_is_written() {
        let guard = Guard::over(&["/var/lib/voxgate/"], "/srv/base");
        for path in ["/var/lib/voxgate", "/var/lib/voxgate/keys/operator", "/var//lib/./voxgate/config.toml", "/srv/../var/lib/voxgate/x", "../../var/lib/voxgate/log", "/../var/lib/voxgate"] {
            assert!(guard.objects(&facts(&[path], &[], &[])).is_some(), "{path}");
        }
        for path in ["/var/lib/voxgate2", "/var/lib", "notes.txt", "/srv/base/var/lib/voxgate", "var/lib/voxgate"] {
            assert_eq!(guard.objects(&facts(&[path], &[], &[])), None, "{path}");
        }
        assert!(guard.objects(&facts(&["ok", "/var/lib/voxgate"], &[], &[])).is_some(), "one of many is enough");
        assert!(guard.objects(&facts(&[], &["cat /var/lib/voxgate/keys"], &[])).is_some());
        let whole = Guard::over(&["/"], "");
        assert_eq!([whole.objects(&facts(&["/etc/hosts"], &[], &[])), whole.objects(&facts(&["/"], &["ls /"], &[]))], [None, None], "the whole machine is not the gateway's folder");
        assert_eq!(["..", "../a", "a/../../b", "/../b", "a/./b//"].map(tidy), ["..", "../a", "../b", "/b", "a/b"], "what leads out of a relative path stays");
    }

    #[test]
    fn ledger_f16_no_tool_reaches_the_control_plane_of_this_machine() {
        for url in [
            "http://127.0.0.1:8710/api", "http://localhost/x", "https://LOCALHOST:1", "http://[::1]/", "http://10.0.0.1", "http://192.168.1.1", "http://172.16.0.9", "http://169.254.169.254/latest",
            "http://2130706433/", "http://0x7f.0.0.1", "http://127.1", "http://0177.0.0.1", "http://a@127.0.0.1/", "http://user:p@localhost", "ftp://example.org", "file:///etc", "http://intranet/", "http://x.local",
            "http://0.0.0.0:8710", "http://127.0.0.1.", "http://100.64.0.1", "", "http://", "http://x.localhost", "http://x.internal", "http://224.0.0.1", "http://198.18.0.1", "http://1.2.3.4.5", "http://8.8.08.8",
        ] {
            assert!(Guard::none().objects(&facts(&[], &[], &[url])).is_some(), "{url}");
        }
        for url in ["https://example.org/a?b=c", "http://example.org:8080", "https://8.8.8.8/", "https://127.0.0.1.example.org/", "https://104.18.0.5", "https://172.15.0.1", "https://100.63.0.1", "https://x.0x.example"] {
            assert_eq!(Guard::none().objects(&facts(&[], &[], &[url])), None, "{url}");
        }
    }

    #[test]
    fn ledger_l10_commands_that_destroy_a_machine_are_known() {
        for command in [
            "rm -rf /", "sudo rm -fr /*", "rm -r --no-preserve-root /", "rm -rf ~", "rm -rf $HOME/", "/bin/rm -Rf /etc", "cd / && rm -rf *", "rm --recursive --force /usr/", "rm -rf /usr/../",
            "mkfs.ext4 /dev/sda1", "dd if=/dev/zero of=/dev/sda bs=1M", "echo x > /dev/nvme0n1", ":(){ :|:& };:", "chmod -R 777 /", "shutdown -h now", "sudo reboot", "systemctl poweroff", "find / -delete",
            "bash -c 'rm -rf /'", "kill -9 -1", "init 0", "wipefs -a /dev/sda", "blkdiscard /dev/sdb", "shred -n 1 /dev/sda", "telinit 6", "halt", "poweroff", "chown -R nobody /usr", "rm -r *", "kill -KILL -1",
        ] {
            assert!(catastrophic(command).is_some(), "{command}");
        }
        for command in ["rm -rf target", "rm -rf ./build", "rm /tmp/x", "ls -R /", "git status", "dd if=a of=b", "echo rm", "chmod -R u+w docs", "find . -delete", "dd if=x of=/dev/null", "kill -9 123", "grep -r shut .", "rm -f /var", "rm -f /", "rm --preserve-root /", "chmod 755 /", "find / -name x", "find x -delete", "shred notes", "init 3", "systemctl status", "kill -1 123", "kill -15 -1", "dd of=/tmp/x"] {
            assert_eq!(catastrophic(command), None, "{command}");
        }
    }
}
