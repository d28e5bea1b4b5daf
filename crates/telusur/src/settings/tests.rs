use std::path::Path;

use super::*;

fn sources() -> Sources {
    Sources::default()
}

fn with_file(mut sources: Sources, name: &str, text: &str) -> Sources {
    sources.files.push(ConfigFile::parse(Path::new(name), text).unwrap());
    sources
}

fn with_flag(mut sources: Sources, key: Key, value: &str) -> Sources {
    let flag = key.setting().flag.unwrap();
    sources.flags.push(Given { key, flag, raw: Raw::Untyped(value.to_owned()) });
    sources
}

#[track_caller]
fn delay(sources: &Sources) -> (u64, String, Vec<String>) {
    let resolution = resolve(sources).unwrap();
    let row = resolution.settings.row(Key::Delay);
    let Value::DurationMs(ms) = row.value else { panic!("{row:?}") };
    (ms, row.origin.to_string(), resolution.warnings)
}

#[track_caller]
fn refused(name: &str, text: &str) -> String {
    ConfigFile::parse(Path::new(name), text).unwrap_err()[0].to_string()
}

#[test]
fn the_table_is_in_the_order_of_its_keys() {
    for (index, setting) in REGISTRY.iter().enumerate() {
        assert_eq!(setting.key.index(), index, "{:?}", setting.key);
    }
}

#[test]
fn defaults_are_values_and_are_read_back_from_a_file() {
    let settings = resolve(&sources()).unwrap().settings;
    for (setting, row) in settings.all() {
        assert_eq!(row.origin, Origin::Default);
        let text = format!("{} = {}", setting.path(), row.value.toml());
        let file = ConfigFile::parse(Path::new("x"), &text).unwrap();
        assert_eq!(file.row(setting.key).unwrap().value, row.value, "{text}");
    }
}

#[test]
fn each_layer_hides_the_ones_below() {
    let at = sources();
    assert_eq!(delay(&at), (1000, "default".into(), vec![]));
    let at = with_file(at, "a.toml", "[manners]\ndelay = \"2s\"");
    assert_eq!(delay(&at), (2000, "a.toml:2".into(), vec![]));
    let mut at = with_file(at, "b.toml", "manners.delay = \"3s\"");
    assert_eq!(delay(&at), (3000, "b.toml:1".into(), vec![]));
    at.dot_env = Some("\nCRAWL_DELAY_MS=4000".to_owned());
    assert_eq!(delay(&at), (4000, "./.env:2 CRAWL_DELAY_MS".into(), vec![]));
    at.dot_env = Some("TELUSUR_MANNERS__DELAY=5s".to_owned());
    assert_eq!(delay(&at), (5000, "./.env:1 TELUSUR_MANNERS__DELAY".into(), vec![]));
    at.environment = Environment::of(&[("CRAWL_DELAY_MS", "6000")]);
    assert_eq!(delay(&at), (6000, "environment CRAWL_DELAY_MS".into(), vec![]));
    at.environment = Environment::of(&[("TELUSUR_MANNERS__DELAY", "7s")]);
    assert_eq!(delay(&at), (7000, "environment TELUSUR_MANNERS__DELAY".into(), vec![]));
    let at = with_flag(at, Key::Delay, "8s");
    assert_eq!(delay(&at), (8000, "--delay".into(), vec![]));
}

#[test]
fn two_names_that_disagree_are_warned_about_once() {
    let mut at = sources();
    at.environment =
        Environment::of(&[("CRAWL_DELAY_MS", "500"), ("TELUSUR_MANNERS__DELAY", "2s")]);
    let (ms, _, warnings) = delay(&at);
    assert_eq!(ms, 2000);
    assert_eq!(
        warnings,
        ["TELUSUR_MANNERS__DELAY and CRAWL_DELAY_MS disagree; TELUSUR_MANNERS__DELAY is used"]
    );
    at.environment =
        Environment::of(&[("CRAWL_DELAY_MS", "2000"), ("TELUSUR_MANNERS__DELAY", "2s")]);
    assert_eq!(delay(&at).2, Vec::<String>::new());
}

#[test]
fn short_names_are_whole_numbers() {
    let value = |name: &str, text: &str, key: Key| {
        let environment = Environment::of(&[(name, text)]);
        resolve(&Sources { environment, ..sources() }).map(|r| r.settings.value(key).clone())
    };
    assert_eq!(value("CRAWLER_MAX_THREADS", "8", Key::Workers), Ok(Value::Workers(Some(8))));
    assert_eq!(
        value("CRAWLER_DURATION_SECONDS", "90", Key::MaxDuration),
        Ok(Value::DurationMs(90_000))
    );
    assert_eq!(
        value("CRAWLER_START_URLS", "http://a.org/\n http://b.org/ ", Key::StartUrls),
        Ok(Value::List(vec!["http://a.org/".into(), "http://b.org/".into()]))
    );
    for (name, key) in [
        ("CRAWLER_MAX_THREADS", Key::Workers),
        ("CRAWLER_DURATION_SECONDS", Key::MaxDuration),
        ("CRAWL_DELAY_MS", Key::Delay),
    ] {
        for text in ["abc", "-1", "1.5", "2s", "auto", "99999999999999999999"] {
            let message = value(name, text, key).unwrap_err().to_string();
            let start = format!("{name}=\"{text}\" is not a whole number");
            assert!(message.starts_with(&start), "{message}");
        }
    }
}

#[test]
fn an_empty_variable_is_not_set() {
    let environment = Environment::of(&[("CRAWL_DELAY_MS", ""), ("TELUSUR_MANNERS__DELAY", "")]);
    assert_eq!(delay(&Sources { environment, ..sources() }).0, 1000);
    let dot_env = Some("CRAWL_DELAY_MS=".to_owned());
    assert_eq!(delay(&Sources { dot_env, ..sources() }).0, 1000);
}

#[test]
fn a_mistake_in_dot_env_names_its_line() {
    let dot_env = Some("# threads\nCRAWLER_MAX_THREADS=abc\n".to_owned());
    let message = resolve(&Sources { dot_env, ..sources() }).unwrap_err();
    assert!(
        message
            .to_string()
            .starts_with("CRAWLER_MAX_THREADS=\"abc\" is not a whole number (from ./.env line 2)"),
        "{message}"
    );
}

#[test]
fn a_misspelt_variable_is_warned_about() {
    let environment = Environment::of(&[("TELUSUR_MANERS__DELAY", "1s"), ("TELUSUR_CONFIG", "x")]);
    let warnings = resolve(&Sources { environment, ..sources() }).unwrap().warnings;
    assert_eq!(
        warnings,
        ["the variable TELUSUR_MANERS__DELAY sets nothing. Did you mean TELUSUR_MANNERS__DELAY?"]
    );
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    assert_eq!(
        refused("telusur.toml", "[limits]\nmax_page = 5\n"),
        "telusur.toml:2: unknown key \"max_page\" in [limits]. Did you mean \"max_pages\"?"
    );
    assert_eq!(
        refused("t", "[limit]\nmax_pages = 5"),
        "t:1: unknown section [limit]. Did you mean [limits]?"
    );
    assert_eq!(
        refused("t", "delay = \"1s\""),
        "t:1: unknown key \"delay\". Did you mean \"manners.delay\"?"
    );
    assert!(refused("t", "[[host]]\nmatch = \"x\"").starts_with("t:1: unknown key \"host\""));
}

#[test]
fn wrong_types_and_values_name_line_key_and_form() {
    let check = |text: &str, expect: &str| assert_eq!(refused("t", text), expect);
    check(
        "\r\n[manners]\r\ndelay = 5\r\n",
        "t:3: \"delay\" in [manners]: \"5\" is not a duration. Write it like 500ms, 2s, 10m or 1h30m",
    );
    check(
        "scope.include = [\"(\"]",
        "t:1: \"include\" in [scope]: \"(\" is not a usable pattern: unclosed group. Write a regular \
         expression, with a backslash before . ? + ( ) [ ] to mean the character itself",
    );
    check(
        "manners.adaptive = \"yes\"",
        "t:1: \"adaptive\" in [manners]: \"yes\" is neither true nor false. Write true or false",
    );
    check(
        "identity.contact = 5",
        "t:1: \"contact\" in [identity]: \"5\" is not a text. Put it in quotes",
    );
    check("limits = 5", "t:1: \"limits\" is a section, not a value. Write [limits]");
    check(
        "scope.include = [1]",
        "t:1: \"include\" in [scope]: \"a list of other things\" is not a list. Write it like \
         [\"one\", \"two\"]",
    );
}

#[test]
fn all_mistakes_of_a_file_are_found_in_order() {
    let text = "[manners]\ndelay = 5\n[limits]\nmax_page = 1\nmax_body = \"x\"";
    let mistakes = ConfigFile::parse(Path::new("t"), text).unwrap_err();
    let lines: Vec<_> =
        mistakes.iter().map(|m| m.what.chars().take(3).collect::<String>()).collect();
    assert_eq!(lines, ["t:2", "t:4", "t:5"]);
}

#[test]
fn broken_toml_names_its_line() {
    let message = refused("t", "\u{feff}[limits]\nmax_pages = = 5");
    assert!(message.starts_with("t:2: "), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn secrets_are_not_shown() {
    let at = with_flag(sources(), Key::Headers, "Authorization: Bearer secret");
    let settings = resolve(&at).unwrap().settings;
    assert_eq!(settings.value(Key::Headers).toml(), "[\"Authorization: ***\"]");
    for wrong in ["Bearer secret", "A: secret\x01", "A b: secret", "Host: secret"] {
        let message = resolve(&with_flag(sources(), Key::Headers, wrong)).unwrap_err();
        assert!(!message.to_string().contains("secret"), "{message}");
    }
}

#[test]
fn directories_follow_the_xdg_specification() {
    let data = |variables: &[(&str, &str)]| {
        let environment = Environment::of(variables);
        let settings = resolve(&Sources { environment, ..sources() }).unwrap().settings;
        settings.value(Key::DataDir).json()
    };
    assert_eq!(data(&[("HOME", "/h")]), "/h/.local/share/telusur");
    assert_eq!(data(&[("HOME", "/h"), ("XDG_DATA_HOME", "/d")]), "/d/telusur");
    assert_eq!(data(&[("HOME", "/h"), ("XDG_DATA_HOME", "relative")]), "/h/.local/share/telusur");
    assert_eq!(data(&[("TELUSUR_DATA", "/x")]), "/x");
    assert_eq!(data(&[]), "");
}

#[test]
fn a_tilde_is_the_home_directory() {
    let data = |variables: &[(&str, &str)]| {
        let environment = Environment::of(variables);
        let at = with_file(sources(), "t", "data_dir = \"~/x\"");
        resolve(&Sources { environment, ..at }).map(|r| r.settings.value(Key::DataDir).json())
    };
    assert_eq!(data(&[("HOME", "/h")]).unwrap(), "/h/x");
    assert_eq!(
        data(&[]).unwrap_err().to_string(),
        "t:1: \"data_dir\": \"~/x\" begins with ~, but HOME is not set. Write the whole path"
    );
    let at = with_flag(sources(), Key::DataDir, "a~/b");
    assert_eq!(resolve(&at).unwrap().settings.value(Key::DataDir).json(), "a~/b");
}

#[test]
fn urls_in_the_value_of_a_header_are_part_of_it() {
    let read = |text: &str| match resolve(&with_flag(sources(), Key::Headers, text)) {
        Ok(resolution) => match resolution.settings.value(Key::Headers) {
            Value::Headers(headers) => Ok(headers.clone()),
            other => panic!("{other:?}"),
        },
        Err(message) => Err(message.to_string()),
    };
    let header = |name: &str, value: &str| Ok(vec![(name.to_owned(), value.to_owned())]);
    let referer = "https://a.org/?x=1";
    assert_eq!(read("Referer: https://a.org/?x=1"), header("Referer", referer));
    let hook = "https://u:s3cret@h/?a=b";
    assert_eq!(read("X-Hook: https://u:s3cret@h/?a=b"), header("X-Hook", hook));
    assert_eq!(read("HTTPS://A.org=X-Key: a=b"), header("https://a.org=X-Key", "a=b"));
    for wrong in [
        "https://u:s3cret@h/?a=b",
        "https://u:s3cret@h=X-Key: a",
        "https://h=s3cret=b: c",
        "http://s3cret",
        "s3cret",
        "Authorization s3cret: x",
    ] {
        let said = read(wrong).unwrap_err();
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_user_agent_can_stand_in_a_header() {
    for wrong in ["", "a\nb", "T\u{eb}lusur"] {
        assert!(resolve(&with_flag(sources(), Key::UserAgent, wrong)).is_err(), "{wrong:?}");
    }
    assert!(resolve(&with_flag(sources(), Key::Contact, "")).is_ok());
}
