//! No page leads the program to an address that is not public: neither by links, redirects, robots,
//! sitemaps, names nor spellings, nor across a kill. `cargo xtask guard` is the long version, with
//! the delays that users get.

use telusur_testkit::island::{GuardProof, MEANS, on_island};

use crate::Place;

/// What the test calls itself when it runs on the island.
const INSIDE: &str = "guard::on_the_island";

#[test]
fn nothing_internal_is_ever_reached() {
    let mut command = on_island(&std::env::current_exe().unwrap());
    command.args([INSIDE, "--exact", "--ignored", "--nocapture"]);
    let seen = crate::finish(command, "");
    assert_eq!(seen.code, 0, "{MEANS}\n{}{}", seen.stdout, seen.stderr);
    assert!(seen.stdout.contains("1 passed"), "{}", seen.stdout);
}

#[test]
#[ignore = "runs on an island, called by the test above"]
fn on_the_island() {
    let place = Place::new();
    let proof = GuardProof {
        program: env!("CARGO_BIN_EXE_telusur").into(),
        scratch: place.path().to_owned(),
        is_thorough: false,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(proof.run(|line| println!("{line}"))).unwrap();
    assert!(report.refused > 1_000, "{report:?}");
}
