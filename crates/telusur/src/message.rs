//! [`Message`]: what a person reads when something cannot be done. One line that says what happened
//! and what to do, a stable code that `telusur explain` knows, and the exit code.

use std::fmt;

use serde_json::json;
pub use telusur_model::{printable, printable_lines};

/// Longest piece of foreign text that is repeated in a message. Enough to recognise a URL; a
/// hostile one can be megabytes.
const SHOWN_CHARS_MAX: usize = 200;

/// The exit codes of the program, besides 0 for success.
pub mod exit {
    /// The command or the configuration is wrong.
    pub const USAGE: u8 = 2;
    /// No start URL could be fetched.
    pub const NO_START: u8 = 3;
    /// The disk is full, locked or damaged.
    pub const STORAGE: u8 = 4;
    /// The service cannot be reached, or refuses the key.
    pub const SERVER: u8 = 5;
    /// More failed than `--fail-on` bears.
    pub const FAIL_ON: u8 = 6;
    /// Interrupted from the keyboard, after saving.
    pub const INTERRUPTED: u8 = 130;
    /// Asked to end, after saving.
    pub const TERMINATED: u8 = 143;
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $exit:expr, $title:literal;)+) => {
        /// The kinds of message. Their words are stable: people search for them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable word, such as `E0103`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The exit code that goes with it.
            pub fn exit(self) -> u8 {
                match self { $(Self::$variant => $exit,)+ }
            }

            /// The kind of problem, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// What is behind it, and the ways out: the text of `telusur explain`.
            pub fn explanation(self) -> String {
                let lines: &[&str] = match self { $(Self::$variant => &[$($doc),+],)+ };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
            }
        }
    };
}

codes! {
    /// The command line could not be understood: an unknown command or flag, a missing value, or
    /// two flags that contradict each other. `telusur COMMAND --help` lists what there is.
    Usage = "E0101", exit::USAGE, "the command line could not be understood";
    /// A crawl needs at least one URL to start from. Name it after the command, in a file with
    /// `--input FILE` (`-` is standard input), in the variable CRAWLER_START_URLS, or as `urls` in
    /// the section [start] of the configuration.
    NoStartUrl = "E0102", exit::USAGE, "there is no start URL";
    /// A start URL begins with http:// or https://. On a terminal a missing scheme is taken to be
    /// https; in a script Telusur does not guess.
    NoScheme = "E0103", exit::USAGE, "a URL has no scheme";
    /// The text is not an address that can be crawled: only http and https URLs of at most 4,096
    /// bytes are. `telusur inspect url TEXT` shows how a URL is read.
    BadUrl = "E0104", exit::USAGE, "not a URL that can be crawled";
    /// Telusur asks public addresses only, so that a page on the web cannot make it reach into your
    /// network. `--allow-private` opens a range, an address or one HOST:PORT for one crawl.
    PrivateAddress = "E0105", exit::USAGE, "not a public address";
    /// The value of a flag has the wrong form. Durations are written 500ms, 2s, 10m, 1h30m; sizes
    /// 10kB, 1MiB; counts 1000, 1_000, 10k, 1m.
    FlagValue = "E0106", exit::USAGE, "the value of a flag is wrong";
    /// The value of an environment variable, real or from the file .env, has the wrong form.
    /// CRAWL_DELAY_MS, CRAWLER_MAX_THREADS and CRAWLER_DURATION_SECONDS are whole numbers; variables
    /// that begin with TELUSUR_ are written like the key of the configuration that they set.
    EnvironmentValue = "E0107", exit::USAGE, "the value of an environment variable is wrong";
    /// A value in a configuration file has the wrong type or form. `telusur config init` writes a
    /// file with every key and its default.
    ConfigValue = "E0108", exit::USAGE, "a value in a configuration file is wrong";
    /// A configuration file has a key or a section that does not exist. Nothing is ignored silently:
    /// a misspelt limit would be no limit. `telusur config show` lists every key.
    UnknownKey = "E0109", exit::USAGE, "unknown key in a configuration file";
    /// A configuration file or .env could not be read: it is missing, not a regular file, larger
    /// than 1 MiB, or not UTF-8. `--no-config` goes on without any.
    ConfigFile = "E0110", exit::USAGE, "a configuration file cannot be read";
    /// A configuration file is not valid TOML.
    ConfigSyntax = "E0111", exit::USAGE, "a configuration file is not valid TOML";
    /// A line of .env is not `NAME=value`. Values may stand in single or double quotes, `export` may
    /// stand in front, and a comment begins with #.
    DotEnvSyntax = "E0112", exit::USAGE, "a line of .env cannot be understood";
    /// A list of start URLs could not be read. It holds one URL per line; empty lines and lines that
    /// begin with # are skipped.
    StartList = "E0113", exit::USAGE, "a list of start URLs cannot be read";
    /// A list of start URLs is longer than one crawl takes. Split it and start several crawls.
    TooManyStartUrls = "E0114", exit::USAGE, "too many start URLs";
    /// A file that would be written exists already. Nothing is overwritten unless `-O` says so.
    FileExists = "E0115", exit::USAGE, "the output file exists";
    /// There is no such code or reason. Codes look like E0103; reasons are the words that
    /// `telusur show` prints, such as timeout_connect.
    UnknownCode = "E0116", exit::USAGE, "unknown code";
    /// No crawl has asked this host for anything. `telusur show ID` lists the sites of a crawl.
    NoSuchHost = "E0123", exit::USAGE, "the host is not known";
    /// No crawl has stored a page for this URL. `telusur explain URL` says what became of it.
    NoSuchPage = "E0130", exit::USAGE, "the page is not stored";
    /// A file with a page cannot be read: it is missing, too large, or not what its name says.
    PageFile = "E0131", exit::USAGE, "a page cannot be read from its file";
    /// A page breaks the parser: it takes too long, or too much memory. The parser runs in a process of its
    /// own, so that nothing else is harmed. `--as html` prints the page as it came.
    PageParse = "E0136", exit::USAGE, "a page cannot be parsed";
    /// A line of the input is not the JSON object that the command expects.
    BadJsonLine = "E0117", exit::USAGE, "a line is not the expected JSON";
    /// The log file could not be opened.
    LogFile = "E0118", exit::USAGE, "the log file cannot be opened";
    /// There is no such crawl in the data directory. A crawl is named by its id, its alias `crawl_N`,
    /// its name, or `last`; `telusur ls` lists them, and `--data` names another directory.
    NoSuchCrawl = "E0119", exit::USAGE, "there is no such crawl";
    /// The crawl is not in a state for this command: only a running crawl can be paused, only one
    /// that has something left can be resumed, and a running one must be stopped before `rm`.
    WrongState = "E0120", exit::USAGE, "the crawl is not in a state for this";
    /// An argument was understood, and cannot be used.
    BadArgument = "E0121", exit::USAGE, "an argument cannot be used";
    /// `rm` and `cancel` delete what was crawled. On a terminal they ask; in a script they want
    /// `--yes`.
    NotConfirmed = "E0122", exit::USAGE, "deleting was not confirmed";
    /// A template is a URL with `{id}` where the number stands, in the path or in the query:
    /// 'https://example.org/item/{id}'. `{id:08}` writes eight digits. Quotes keep the shell from
    /// touching braces.
    Template = "E0134", exit::USAGE, "a template cannot be used";
    /// Bounds are inclusive, the lower one first. A walk whose end is not known needs a margin: the
    /// number of missing ids in a row after which it stops.
    Walk = "E0135", exit::USAGE, "the ids cannot be walked";
    /// A list holds an id, or a range such as 10-20, on each line; # begins a comment.
    IdList = "E0132", exit::USAGE, "a list of ids cannot be used";
    /// A job is written in a configuration file: `[[job]]` with `name` and `template`, and the flags of
    /// `telusur linear` as keys.
    NoSuchJob = "E0133", exit::USAGE, "there is no such job";
    /// `telusur serve` listens on 127.0.0.1 unless `--listen` says otherwise. Others than this machine can
    /// reach any other address, so there must be a key first: `telusur key create --scope admin`.
    NoKey = "E0140", exit::USAGE, "others could reach the service without a key";
    /// The address is not one of this machine, is in use, or needs rights that you do not have. Choose
    /// another one with `--listen`.
    Listen = "E0141", exit::USAGE, "the service cannot listen on its address";
    /// A key could not be made, listed or revoked. They are kept as hashes in `keys.json` in the data directory.
    Keys = "E0142", exit::USAGE, "the keys cannot be used";
    /// Users of the service choose the URLs that it asks for, so a header or a login that may let somebody in
    /// must name the one origin that it is for: `headers = ["https://example.org=Authorization: …"]`,
    /// `basic_auth = ["https://example.org=me:env:VARIABLE"]`. Without an origin only headers go that are known to be
    /// no secrets: Accept, Accept-Language, Cache-Control, DNT, From, Pragma, Prefer, Priority, Referer, Save-Data,
    /// Upgrade-Insecure-Requests, User-Agent, X-Requested-With, Sec-Fetch-*, Sec-CH-* and a few of their kind.
    UnboundSecret = "E0143", exit::USAGE, "a header or login names no origin";
    /// None of the start URLs gave a page, so there was nothing to follow. `telusur show last
    /// --errors` lists what each of them answered; `telusur demo` works without a connection.
    NoStart = "E0301", exit::NO_START, "no start URL could be fetched";
    /// Host after host could not be reached and nobody answered: the fault is most likely on this
    /// side of the network. The crawl waits, and no attempt at a URL was used up.
    NoNetwork = "E0302", exit::NO_START, "nothing can be reached";
    /// The page could not be fetched, or came with an error status. The message names the reason;
    /// `telusur explain REASON` tells more about it.
    NotFetched = "E0303", exit::NO_START, "the page could not be fetched";
    /// Every host that is left answers, and asks us to wait (429 or 503 with Retry-After) for longer than the
    /// crawl's patience. The crawl has ended and nothing is lost: resume it later, or let it wait longer with
    /// `--patience` (0s waits as long as the hosts say).
    AskedToWait = "E0304", exit::NO_START, "the hosts ask us to wait";
    /// A result could not be written, most often because the disk is full.
    Output = "E0401", exit::STORAGE, "the output could not be written";
    /// One process owns a data directory. Reading commands and pause, resume, stop, cancel and exclude
    /// are sent to it; a new crawl must wait for it to end, or use another directory with `--data`.
    Locked = "E0402", exit::STORAGE, "the data directory is in use";
    /// Less space is left than `limits.min_free_disk`, or none at all. The crawl is paused, nothing is
    /// lost; free some space and resume it.
    DiskFull = "E0403", exit::STORAGE, "the disk is full";
    /// The data directory holds something else, or was written by another version of Telusur. It is
    /// left as it is.
    UnusableData = "E0404", exit::STORAGE, "the data directory cannot be used";
    /// Bytes on the disk are not what was written. Nothing is deleted; `telusur verify` names what is
    /// damaged.
    DamagedData = "E0405", exit::STORAGE, "stored data is damaged";
    /// The data directory could not be read or written.
    Storage = "E0406", exit::STORAGE, "the data directory cannot be read or written";
    /// `telusur verify` found a promise that does not hold, and printed which; or it found nothing to check, as
    /// in a data directory that is not there: name the right one with `--data`.
    NotVerified = "E0407", exit::STORAGE, "the stored data is not what was promised, or nothing was checked";
    /// The search index is not what was written. It is made from the stored pages, which are not
    /// touched, and is built anew when it is next opened.
    DamagedIndex = "E0408", exit::STORAGE, "the search index is damaged";
    /// A file below `state/`, or `telusur.version`, is damaged, missing, or older than the rest of the data directory.
    /// The message names the file, the place in it, and what is missing. Nothing was changed.
    /// Restore the directory from a backup, or rebuild its state from the stored pages with `telusur recover`. The pages in
    /// `bodies/` are not affected: they are WARC records (`.warc.zst`), which other tools read.
    DamagedState = "E0409", exit::STORAGE, "the state of the data directory is damaged";
    /// The service that --server names cannot be reached, or ended the connection. Check the address and the
    /// network; on the other machine, telusur serve --listen ADDRESS says where it listens.
    ServerUnreachable = "E0501", exit::SERVER, "the service cannot be reached";
    /// The service that --server names wants a key, or the key does not allow this. Make one there:
    /// telusur key create --scope crawl; and name it with TELUSUR_KEY or --key.
    ServerRefused = "E0502", exit::SERVER, "the service refused";
    /// The command works on a data directory of this machine, not on a service. Run it on the machine of the service,
    /// or leave out --server (and TELUSUR_SERVER).
    NotRemote = "E0503", exit::USAGE, "not possible through a service";
    /// More failed than the crawl's `--fail-on` bears. What was crawled is kept.
    FailOn = "E0601", exit::FAIL_ON, "more failed than --fail-on bears";
}

impl Code {
    /// The code with this word, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.word().eq_ignore_ascii_case(word))
    }
}

/// Why a command could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub code: Code,
    /// What happened, without a full stop.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Message {
    /// A message without advice.
    pub fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), hint: None }
    }

    /// The same message with advice.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The machine's form, after RFC 9457.
    pub fn json(&self) -> serde_json::Value {
        json!({
            "type": format!("urn:telusur:error:{}", self.code.word()),
            "code": self.code.word(),
            "title": self.code.title(),
            "detail": self.what,
            "hint": self.hint,
            "exit_code": self.code.exit(),
        })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.what))?;
        match &self.hint {
            Some(hint) => write!(f, ". {}", printable(hint)),
            None => Ok(()),
        }
    }
}

/// Foreign text for people: harmless on a terminal, and not longer than a message bears.
pub fn shown(text: &str) -> String {
    let mut shown = printable(text);
    if let Some((end, _)) = shown.char_indices().nth(SHOWN_CHARS_MAX) {
        shown.truncate(end);
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use telusur_model::is_treacherous;

    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
        for &code in Code::ALL {
            assert_eq!(Code::from_word(&code.word().to_lowercase()), Some(code));
            assert!(code.explanation().ends_with('.'), "{code:?}");
        }
    }

    #[test]
    fn a_message_is_one_line() {
        let message = Message::new(Code::NoScheme, "\"a\nb\" has no scheme").hint("Say https");
        assert_eq!(message.to_string(), "\"a\u{fffd}b\" has no scheme. Say https");
        assert_eq!(message.json()["exit_code"], 2);
        assert_eq!(message.json()["code"], "E0103");
    }

    #[test]
    fn terminals_are_not_commanded() {
        for text in ["\x1b[2J", "\u{9b}31m", "\r", "\x07", "\u{202e}gpj.exe", "\u{2066}", "\u{7f}"]
        {
            assert!(!shown(text).contains(is_treacherous), "{text:?}");
        }
        assert_eq!(shown("plain ü 日本 🦀"), "plain ü 日本 🦀");
    }

    #[test]
    fn text_keeps_its_lines() {
        let check = |text, expect: &str| assert_eq!(printable_lines(text), expect, "{text:?}");
        check("a\n\tb", "a\n\tb");
        check("a\r\nb\rc", "a\nb\nc");
        check("\x1b[2J\u{9b}\u{202e}\0", "\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}");
        check("\u{feff}a\u{200f}", "a");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(shown(&"ü".repeat(1_000_000)).chars().count(), SHOWN_CHARS_MAX + 3);
    }
}
