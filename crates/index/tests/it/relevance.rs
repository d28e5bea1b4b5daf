//! Questions in natural language find their page.

use telusur_index::IndexDoc;

use crate::web::{Web, page};

fn library() -> Web {
    let id = |url: &str, text: &str| IndexDoc { language: None, ..page(url, "", text) };
    Web::of(&[
        page(
            "https://a.example/wings",
            "Lift of a wing in a slipstream",
            "The distribution of lift on wings was measured. The slipstream of a propeller increases it.",
        ),
        page(
            "https://a.example/heat",
            "Heat conduction in slabs",
            "Solutions for the conduction of heat in composite slabs are given. The problem is solved for two layers.",
        ),
        page(
            "https://a.example/flow",
            "Flow past a plate",
            "Problems of flow, and what is known about solving problems of flow, were collected so far.",
        ),
        id(
            "https://b.example/nil",
            "Sungai Nil adalah sungai terpanjang di dunia yang mengalir di Afrika dan bermuara di Laut Tengah.",
        ),
        id(
            "https://b.example/afrika",
            "Afrika adalah benua terbesar kedua di dunia. Banyak sungai mengalir di benua ini, di antaranya sungai yang panjang.",
        ),
    ])
}

#[test]
fn questions_in_english() {
    let web = library();
    assert_eq!(
        web.paths("what problems of heat conduction in composite slabs have been solved so far")[0],
        "heat"
    );
    assert_eq!(web.paths("how does a propeller increase the lift of a wing?")[0], "wings");
}

#[test]
fn questions_in_indonesian() {
    assert_eq!(library().paths("Apakah nama sungai terpanjang di dunia?")[0], "nil");
    assert_eq!(library().paths("di manakah letak benua terbesar kedua?")[0], "afrika");
}

#[test]
fn words_that_say_little_do_not_decide() {
    library().check_set("the of", &["flow", "heat", "wings"]);
    assert_eq!(library().paths("the slabs")[0], "heat");
    assert_eq!(library().paths("the slabs").len(), 1);
}

#[test]
fn a_quotation_in_prose_demands_nothing() {
    let web = library();
    let prose = "I am looking for articles which treat the conduction of heat, the \"composite structures\" of slabs, and layers of them";
    assert_eq!(web.paths(prose)[0], "heat");
}

/// In a long question, words that are everywhere only rank what the others find.
#[test]
fn common_words_of_a_long_question_find_nothing_alone() {
    let common = |number: u32| {
        page(&format!("https://c.example/{number}"), "", "a weather report of the valley")
    };
    let mut pages: Vec<IndexDoc> = (0..40).map(common).collect();
    pages.push(page("https://a.example/plain", "", "zinc opal jade ruby onyx topaz lizard"));
    pages.push(page("https://a.example/better", "", "zinc opal jade ruby onyx topaz weather"));
    let web = Web::of(&pages);
    let found = web.search("zinc opal jade ruby onyx topaz weather");
    assert_eq!(found.estimated_total, 2);
    assert_eq!(web.paths("zinc opal jade ruby onyx topaz weather"), ["better", "plain"]);
    assert_eq!(web.search("zinc weather").estimated_total, 42, "a short question means each word");
}
