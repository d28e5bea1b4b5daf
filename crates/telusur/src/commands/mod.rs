//! Carries commands out: reads the command line, finds the settings, runs the command and turns
//! its end into an exit code.

mod crawl;
mod linear;
mod run;

mod detach;

mod show;
mod watch;

mod manage;

mod coverage;
mod explain;
mod page;

mod export;

mod fetch;
mod inspect;

mod rank;
mod search;

mod import;
mod index;
mod politeness;

mod serve;

mod key;

mod follow;

mod recover;
mod reparse;
mod verify;

mod config;
mod demo;

mod bench;
mod findable;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;
use serde_json::json;
use telusur_engine::control::{
    CancelCrawl, Each, ExcludeUrls, Operation, PauseCrawl, RemoveCrawl, StopCrawl,
};
use telusur_engine::export::RunOperations;

use crate::backend::{self, Target};
use crate::cli::{
    Cli, ColorChoice, Command, CrawlId, GlobalOptions, IndexArgs, InspectCommand, RemoveArgs,
};
use crate::foreground::parsers;
use crate::json::write_json_line;
use crate::logging;
use crate::message::{Code, Message, exit, shown};
use crate::remote;
use crate::settings::{
    ConfigFile, Environment, Given, Resolution, Settings, Sources, config_files, read_small_file,
    resolve,
};
use crate::terminal::{Talk, Terminal, wants_color};

/// Why a command ended before its end.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong, and the user is told.
    Message(Message),
    /// Standard output took no more.
    Output(io::Error),
}

impl From<Message> for Failure {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

/// Only writing results uses `?` on an I/O error; every other one is made a [`Message`] on the spot.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// How a command ends: an exit code, or a failure.
pub type Outcome = Result<u8, Failure>;

/// Runs the program.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let environment = Environment::of_process();
    let cli = match parse(arguments, &environment) {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    let terminal = Terminal::of_stderr(&environment, cli.global.color);
    let talk = Talk {
        is_quiet: cli.global.quiet,
        is_json: cli.global.json,
        is_colored: terminal.is_colored,
    };
    let session = Session { global: cli.global, environment, terminal, talk };
    let mut output = io::stdout().lock();
    let outcome = session.carry_out(cli.command, &mut output);
    let outcome = outcome.and_then(|code| Ok(output.flush().map(|()| code)?));
    ExitCode::from(session.end(outcome))
}

/// Reads the command line. Help and the version are printed right here.
fn parse(arguments: impl Iterator<Item = OsString>, environment: &Environment) -> Result<Cli, u8> {
    let arguments: Vec<OsString> = arguments.collect();
    let is_terminal = io::stdout().is_terminal();
    let color = match wants_color(environment, ColorChoice::Auto, is_terminal) {
        true => clap::ColorChoice::Always,
        false => clap::ColorChoice::Never,
    };
    let command = Cli::parser().color(color);
    let matches = command.try_get_matches_from(&arguments);
    let error = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Err(0)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Err(exit::USAGE)
        }
        _ => {
            // The flags could not be read, so the few that matter here are looked for as text.
            let is_json = arguments.iter().any(|argument| argument == "--json");
            let is_colored =
                wants_color(environment, ColorChoice::Auto, io::stderr().is_terminal());
            Talk { is_quiet: false, is_json, is_colored }.error(&usage_message(&error, &arguments));
            Err(exit::USAGE)
        }
    }
}

/// Clap explains a mistake in a paragraph, a tip and the usage; we say it in one line.
fn usage_message(error: &clap::Error, arguments: &[OsString]) -> Message {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let what = words(paragraphs.next().unwrap_or_default());
    let what = what.strip_prefix("error: ").unwrap_or(&what).to_owned();
    let tips: Vec<String> = paragraphs
        .flat_map(str::lines)
        .filter_map(|line| line.trim().strip_prefix("tip: "))
        .map(words)
        .collect();
    let help = match command_in(arguments) {
        Some(command) => format!("See: telusur {command} --help"),
        None => "See: telusur --help".to_owned(),
    };
    let hint = match tips.first() {
        Some(tip) => format!("Tip: {tip}. {help}"),
        None => help,
    };
    Message::new(Code::Usage, what).hint(hint)
}

/// The command that the user meant, as far as it can be told from a command line that is wrong.
fn command_in(arguments: &[OsString]) -> Option<String> {
    let command = Cli::parser();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let mut words = arguments.iter().filter_map(|argument| argument.to_str());
    words.find(|word| names.contains(word)).map(str::to_owned)
}

/// One run of the program.
pub(crate) struct Session {
    global: GlobalOptions,
    environment: Environment,
    terminal: Terminal,
    talk: Talk,
}

impl Session {
    fn carry_out(&self, command: Command, output: &mut dyn Write) -> Outcome {
        match command {
            Command::Demo(space) => self
                .expect_local("demo")
                .map_err(Failure::from)
                .and_then(|()| demo::demo(self, &space, output)),
            Command::Crawl(arguments) => crawl::crawl(self, &arguments, output),
            Command::Search(arguments) => search::search(self, &arguments, output),
            Command::Rank(arguments) => rank::rank(self, &arguments, output),
            Command::Suggest { typed } => search::suggest(self, &typed, output),
            Command::Import { file, name, space } => {
                import::import(self, &file, name.as_deref(), &space, output)
            }
            Command::Index(IndexArgs { command: Some(command), .. }) => {
                index::index(self, &command, output)
            }
            Command::Index(_) => self
                .expect_local("index --follow")
                .map_err(Failure::from)
                .and_then(|()| follow::follow(self, output)),
            Command::Serve(arguments) => self
                .expect_local("serve")
                .map_err(Failure::from)
                .and_then(|()| serve::serve(self, &arguments, output)),
            Command::Key(command) => self
                .expect_local("key")
                .map_err(Failure::from)
                .and_then(|()| key::key(self, &command, output)),
            Command::Linear(arguments) => linear::linear(self, &arguments, output),
            Command::Coverage(arguments) => coverage::coverage(self, &arguments, output),
            Command::Ls => show::ls(self, output),
            Command::Show(arguments) => show::show(self, &arguments, output),
            Command::Resume(arguments) => manage::resume(self, &arguments, output),
            Command::Retry(arguments) => manage::retry(self, &arguments, output),
            Command::Recrawl(arguments) => manage::recrawl(self, &arguments, output),
            Command::Pause(CrawlId { crawl }) => {
                manage::order(self, &PauseCrawl { crawl }, "paused", output)
            }
            Command::Stop(CrawlId { crawl }) => {
                manage::order(self, &StopCrawl { crawl }, "stopped", output)
            }
            Command::Exclude { crawl, pattern } => {
                manage::order(self, &ExcludeUrls { crawl, pattern }, "changed", output)
            }
            Command::Cancel(RemoveArgs { crawl, yes }) => {
                manage::confirm(self, &crawl, yes)?;
                manage::order(self, &CancelCrawl { crawl }, "cancelled", output)
            }
            Command::Rm(RemoveArgs { crawl, yes }) => {
                manage::confirm(self, &crawl, yes)?;
                manage::order(self, &RemoveCrawl { crawl }, "removed", output)
            }
            Command::Export(arguments) => export::export(self, &arguments, output),
            Command::Fetch(arguments) => fetch::fetch(self, &arguments, output),
            Command::Page(arguments) => page::page(self, &arguments, output),
            Command::Reparse(arguments) => reparse::reparse(self, arguments, output),
            Command::Politeness { host } => politeness::politeness(self, &host, output),
            Command::Verify(arguments) if arguments.scrub => {
                verify::scrub(self, &arguments.pace, output)
            }
            Command::Verify(arguments) => verify::verify(self, &arguments, output),
            Command::Recover(arguments) => self
                .expect_local("recover")
                .map_err(Failure::from)
                .and_then(|()| recover::recover(self, &arguments, output)),
            Command::Bench(arguments) => self
                .expect_local("bench")
                .map_err(Failure::from)
                .and_then(|()| bench::bench(self, &arguments, output)),
            Command::FakeWeb { spec, bodies } => {
                bench::serve_fake_web(&spec, bodies.as_deref(), output)
            }
            Command::Explain(arguments) => explain::explain(self, &arguments, output),
            Command::Inspect(InspectCommand::Url(arguments)) => {
                inspect::inspect_url(self, &arguments, output)
            }
            Command::Inspect(InspectCommand::Page(arguments)) => {
                inspect::inspect_page(self, &arguments, output)
            }
            Command::Inspect(InspectCommand::Robots(arguments)) => {
                inspect::inspect_robots(self, &arguments, output)
            }
            Command::Inspect(InspectCommand::Sitemap { file }) => {
                inspect::inspect_sitemap(self, &file, output)
            }
            Command::Config(command) => config::config(self, command, output),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::parser(), "telusur", &mut script);
                output.write_all(&script)?;
                Ok(0)
            }
            Command::Version => self.version(output),
        }
    }

    fn version(&self, output: &mut dyn Write) -> Outcome {
        let version = env!("CARGO_PKG_VERSION");
        if self.global.json {
            let system = (std::env::consts::OS, std::env::consts::ARCH);
            let answer =
                json!({ "name": "telusur", "version": version, "os": system.0, "arch": system.1 });
            write_json_line(output, &answer)?;
        } else {
            writeln!(output, "telusur {version}")?;
        }
        Ok(0)
    }

    /// Finds the settings for a command, warns about what is odd, and starts the log.
    fn settings(&self, flags: Vec<Given>) -> Result<Resolution, Message> {
        let sources = self.sources(flags)?;
        let resolution = resolve(&sources)?;
        for warning in &resolution.warnings {
            self.talk.warning(warning);
        }
        logging::start(&resolution.settings, &self.environment)?;
        for file in &sources.files {
            tracing::debug!(file = %file.path.display(), "configuration file read");
        }
        tracing::debug!(dot_env = sources.dot_env.is_some(), "settings resolved");
        Ok(resolution)
    }

    /// Where this command finds crawls: the service that is named, or the data directory.
    fn target(&self, settings: &Settings) -> Result<Target, Message> {
        let server =
            self.global.server.as_deref().or_else(|| self.environment.text("TELUSUR_SERVER"));
        let Some(server) = server.filter(|server| !server.is_empty()) else {
            let dir = backend::data_dir(settings)?.to_owned();
            return Ok(Target::Directory { dir, parsers: parsers(settings) });
        };
        let key = self.global.key.as_deref().or_else(|| self.environment.text("TELUSUR_KEY"));
        Ok(Target::Service(remote::client(server, key.filter(|key| !key.is_empty()))?))
    }

    /// Refuses a command that works on a data directory itself, if the user named a service.
    fn expect_local(&self, command: &str) -> Result<(), Message> {
        match &self.global.server {
            None => Ok(()),
            Some(server) => {
                let what = format!(
                    "telusur {command} works on a data directory, not on {}",
                    shown(server)
                );
                Err(Message::new(Code::NotRemote, what)
                    .hint("Run it on the machine of the service, without --server"))
            }
        }
    }

    /// Runs an operation on the data directory and gives its reply.
    fn ask<O: Operation>(&self, operation: &O) -> Result<O::Reply, Message> {
        let reply = self.each(operation, &mut |_| true)?;
        Ok(reply.expect("an operation that nobody breaks off replies"))
    }

    /// Runs an operation on the data directory, and calls `each` with every item until it returns false. Then
    /// nobody waits for the reply.
    fn each<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, Message> {
        let settings = self.settings(Vec::new())?.settings;
        backend::ask(&self.target(&settings)?, operation, each)
    }

    /// Runs an operation on the data directory and gives its items.
    fn collect<O: Operation>(&self, operation: &O) -> Result<Vec<O::Item>, Message> {
        let mut items = Vec::new();
        self.each(operation, &mut |item| {
            items.push(item);
            true
        })?;
        Ok(items)
    }

    /// Whether progress is to be shown.
    fn wants_progress(&self) -> bool {
        let is_off = |name| self.environment.get(name).is_some_and(|value| value != "0");
        !self.global.no_progress && !self.global.quiet && !is_off("TELUSUR_NO_PROGRESS")
    }

    /// Everything that settings come from, read.
    fn sources(&self, flags: Vec<Given>) -> Result<Sources, Message> {
        let mut all_flags = self.global.given();
        all_flags.extend(flags);
        let mut files = Vec::new();
        for ConfigPath { path, is_named } in self.config_paths() {
            match ConfigFile::read(&path).map_err(|mut mistakes| mistakes.remove(0))? {
                Some(file) => files.push(file),
                None if is_named => return Err(missing(&path)),
                None => {}
            }
        }
        let dot_env = if self.global.no_config { None } else { read_dot_env()? };
        Ok(Sources { flags: all_flags, environment: self.environment.clone(), dot_env, files })
    }

    /// The configuration files that count for this run.
    fn config_paths(&self) -> Vec<ConfigPath> {
        let named = |path: PathBuf| ConfigPath { path, is_named: true };
        if self.global.no_config {
            return Vec::new();
        }
        if !self.global.config.is_empty() {
            return self.global.config.iter().cloned().map(named).collect();
        }
        if let Some(path) = self.environment.get("TELUSUR_CONFIG") {
            return vec![named(path.into())];
        }
        let usual = |path| ConfigPath { path, is_named: false };
        config_files(&self.environment).into_iter().map(usual).collect()
    }

    /// Says how the command ended, and gives its exit code.
    fn end(&self, outcome: Outcome) -> u8 {
        let message = match outcome {
            Ok(code) => return code,
            // Whoever reads us has seen enough: `telusur ls | head -1` is no error.
            Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
            Err(Failure::Output(error)) => {
                Message::new(Code::Output, format!("cannot write the output: {error}"))
            }
            Err(Failure::Message(message)) => message,
        };
        self.talk.error(&message);
        message.code.exit()
    }
}

impl RunOperations for Session {
    type Error = Message;

    fn each<O: Operation>(
        &self,
        operation: &O,
        each: Each<'_, O::Item>,
    ) -> Result<Option<O::Reply>, Message> {
        self.each(operation, each)
    }
}

/// A configuration file that counts for this run.
struct ConfigPath {
    path: PathBuf,
    /// Whether the user named it, so that it must exist.
    is_named: bool,
}

fn missing(path: &std::path::Path) -> Message {
    let path = crate::message::shown(&path.to_string_lossy());
    Message::new(Code::ConfigFile, format!("cannot read {path}: there is no such file"))
        .hint(format!("Write one with: telusur config init {path}"))
}

fn read_dot_env() -> Result<Option<String>, Message> {
    let path = std::path::Path::new(".env");
    // Python keeps whole environments in a directory of this name; that is none of our business.
    if path.is_dir() {
        return Ok(None);
    }
    read_small_file(path)
}
