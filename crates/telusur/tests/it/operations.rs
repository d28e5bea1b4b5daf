//! Every operation has its command, its help and its route, or a reason why not.

use std::collections::BTreeSet;

use clap::Command;
use serde_json::Value;
use telusur::cli::Cli;
use telusur::surface::{Surface, surface};
use telusur_engine::control::OperationKind;

use crate::Place;
use crate::serve::Served;

/// What is missing of an operation.
fn missing(name: &str, surface: &Surface, parser: &Command, description: &Value) -> Vec<String> {
    let mut missing = Vec::new();
    match surface.command {
        Ok(command) => missing.extend(missing_command(command, parser)),
        Err(why) if why.len() < 10 => missing.push("a reason for the lack of a command".into()),
        Err(_) => {}
    }
    match surface.route {
        Ok((method, path)) => {
            let operation = &description["paths"][path][method];
            if operation.is_null() {
                missing.push(format!("the route {method} {path}"));
            } else if operation["summary"].as_str().is_none_or(str::is_empty) {
                missing.push(format!("a summary of {method} {path}"));
            }
        }
        Err(why) if why.len() < 10 => missing.push("a reason for the lack of a route".into()),
        Err(_) => {}
    }
    missing.into_iter().map(|what| format!("{name} lacks {what}")).collect()
}

/// What is missing of a command, `show --errors` or `index rebuild`: itself, or its line of help.
fn missing_command(words: &str, parser: &Command) -> Option<String> {
    let mut command = parser;
    for word in words.split(' ') {
        if let Some(flag) = word.strip_prefix("--") {
            let argument = command.get_arguments().find(|it| it.get_long() == Some(flag));
            let has_help = argument.is_some_and(|it| it.get_help().is_some());
            return (!has_help).then(|| format!("the flag {word} of {words} with its help"));
        }
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => return Some(format!("the command {words}")),
        }
    }
    command.get_about().is_none().then(|| format!("a line of help for {words}"))
}

#[test]
fn every_operation_has_its_command_and_its_route() {
    let place = Place::new();
    let served = Served::start(&place, &[]);
    let description: Value = served.json("/api/v1/openapi.json");
    let parser = Cli::parser();
    let all = OperationKind::ALL.iter();
    let found: Vec<String> = all
        .clone()
        .flat_map(|kind| missing(&kind.word(), &surface(*kind), &parser, &description))
        .collect();
    assert!(found.is_empty(), "{found:#?}");

    // It is a check that can fail: a command, a flag, a route and a reason that are not there.
    let sound = surface(OperationKind::ReadCrawl);
    let planted = [
        Surface { command: Ok("shov"), ..sound },
        Surface { command: Ok("show --eror"), ..sound },
        Surface { command: Err(""), ..sound },
        Surface { route: Ok(("get", "/api/v1/crawl/{id}")), ..sound },
        Surface { route: Ok(("put", "/api/v1/crawls/{id}")), ..sound },
        Surface { route: Err(""), ..sound },
    ];
    for wrong in planted {
        assert_eq!(missing("it", &wrong, &parser, &description).len(), 1, "{wrong:?}");
    }

    // The route of the terminal takes each of them by its name.
    let names: BTreeSet<String> = all.map(|kind| kind.word()).collect();
    assert_eq!(names.len(), OperationKind::ALL.len());
    for name in names {
        assert!(OperationKind::from_word(&name).is_some(), "{name}");
    }
}
