//! The content of a page, as a schema. The content itself is a type of `model`, which knows nothing of
//! descriptions: these types only describe it, and a test holds both together.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The field that holds it.
const FIELD: &str = "content";

/// Adds the schemas, and puts them where content is shown.
pub(super) fn put_in_place(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    for schema in schemas.values_mut() {
        if let RefOr::T(schema) = schema {
            put_into(schema);
        }
    }
    let mut parts = Vec::new();
    PageContent::schemas(&mut parts);
    schemas.extend(parts);
    schemas.insert(PageContent::name().into_owned(), PageContent::schema());
}

/// An object that flattens another one into itself is described by several parts.
fn put_into(schema: &mut Schema) {
    if let Schema::AllOf(parts) = schema {
        for part in &mut parts.items {
            if let RefOr::T(part) = part {
                put_into(part);
            }
        }
    } else if let Schema::Object(object) = schema
        && let Some(field) = object.properties.get_mut(FIELD)
    {
        describe(field);
    }
}

/// Says what an object without known fields holds.
fn describe(field: &mut RefOr<Schema>) {
    let RefOr::T(Schema::Object(object)) = field else { return };
    let (is_object, is_optional) = match &object.schema_type {
        SchemaType::Type(only) => (*only == Type::Object, false),
        SchemaType::Array(types) => (types.contains(&Type::Object), types.contains(&Type::Null)),
        SchemaType::AnyValue => (false, false),
    };
    if !is_object || !object.properties.is_empty() {
        return;
    }
    let text = object.description.clone();
    let mut content = Ref::from_schema_name(PageContent::name());
    *field = if is_optional {
        let null = ObjectBuilder::new().schema_type(Type::Null).build();
        let choice = OneOfBuilder::new().item(Schema::Object(null)).item(content);
        RefOr::T(Schema::OneOf(choice.description(text).build()))
    } else {
        content.description = text.unwrap_or_default();
        RefOr::Ref(content)
    };
}

macro_rules! described {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)+ })+) => {
        $($(#[$doc])*
        #[derive(ToSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct $name { $($(#[$field_doc])* $field: $kind,)+ })+
    };
}

described! {
    /// Everything in a page, by kind.
    PageContent {
        /// The character encoding that the page was read in, by its WHATWG name; empty if the page was not
        /// read, because it is neither HTML nor a feed nor plain text.
        charset: String,
        /// Bytes of the body.
        bytes: u64,
        /// Whether the page has an `<article>`.
        html5: bool,
        /// The content of `<title>`.
        title: Option<String>,
        /// `<meta name=description>`, else what Open Graph says.
        description: Option<String>,
        /// `<meta name=keywords>`.
        keywords: Option<String>,
        /// Who wrote it.
        author: Option<String>,
        /// When it was published, as the page writes it.
        published: Option<String>,
        /// When it was last changed, as the page writes it.
        modified: Option<String>,
        /// The language of the text as an ISO 639-1 code: the detected one, else the declared one.
        language: Option<String>,
        /// The language that the page declares (`<html lang>`), as written.
        language_declared: Option<String>,
        /// The language that the main text is written in, if there is enough of it to tell.
        language_detected: Option<String>,
        /// `<link rel=canonical>`, resolved.
        canonical: Option<String>,
        /// `<meta name=robots>`, as written.
        robots: Option<String>,
        /// `<meta name=telusur>`, as written: rules for this crawler alone.
        robots_own: Option<String>,
        /// Where `<meta http-equiv=refresh>` leads.
        refresh: Option<String>,
        /// The main content as plain text.
        text: String,
        /// The visible text of `<article>`, else of `<body>`.
        visible_text: String,
        /// The main content as Markdown.
        markdown: String,
        /// `<meta property="og:…">` and its like.
        open_graph: Vec<MetaProperty>,
        /// The headings, in the order of the page.
        headings: Vec<Heading>,
        /// The links that can be followed, each URL once.
        links: Vec<ContentLink>,
        /// The images, each URL once.
        images: Vec<Image>,
        /// The tables, those inside others behind them.
        tables: Vec<Table>,
        /// The lists; those inside others are part of them.
        lists: Vec<List>,
        /// The forms.
        forms: Vec<Form>,
        /// The scripts.
        scripts: Vec<Script>,
        /// The style sheets.
        styles: Vec<Style>,
        /// The pieces of JSON-LD.
        json_ld: Vec<JsonLd>,
        /// The feeds that the page names.
        feeds: Vec<Feed>,
        /// The same page in other languages.
        alternates: Vec<Alternate>,
        /// The entries, if the page is itself a feed.
        feed_entries: Vec<FeedEntry>,
        /// How many of each kind were beyond its limit.
        dropped: Dropped,
        /// What went wrong while reading it: `too_deep`, `too_many_attributes`, `too_many_links`,
        /// `too_much_text`, `bad_bytes`, `truncated`, `unsupported_type`, `unknown_coding`.
        warnings: Vec<String>,
    }
    /// A name and a value, as in `<meta property="og:type" content="article">`.
    MetaProperty {
        /// Such as `og:type`.
        name: String,
        /// Such as `article`.
        value: String,
    }
    /// A heading.
    Heading {
        /// From 1 to 6.
        level: u8,
        /// Its text.
        text: String,
    }
    /// A link in the content of a page.
    ContentLink {
        /// Where it leads.
        url: String,
        /// The text of the anchor.
        anchor: String,
        /// `anchor`, `frame`, `relation` or `refresh`.
        kind: String,
        /// Whether it carries `rel=nofollow`.
        nofollow: bool,
        /// `rel`, as written.
        rel: String,
    }
    /// An image.
    Image {
        /// Where it is; of several sizes, the largest.
        url: String,
        /// The alternative text.
        alt: String,
        /// The width that the page gives it.
        width: Option<u32>,
        /// The height that the page gives it.
        height: Option<u32>,
    }
    /// A table.
    Table {
        /// Its caption.
        caption: Option<String>,
        /// Its cells, row by row; a cell that spans several places is in all of them.
        rows: Vec<Vec<Cell>>,
        /// Its markup, of the outermost table only.
        html: String,
        /// Whether cells or markup beyond the limits were left out.
        truncated: bool,
    }
    /// A cell of a table.
    Cell {
        /// Its text.
        text: String,
        /// Whether it is a heading of its row or column.
        header: bool,
        /// Whether it only repeats a cell that spans several places.
        spanned: bool,
    }
    /// A list.
    List {
        /// Whether its items are numbered.
        ordered: bool,
        /// Its items, with those of the lists inside them.
        items: Vec<ListItem>,
    }
    /// An item of a list.
    ListItem {
        /// How many lists are around its own.
        level: u32,
        /// Its text, without that of the lists inside it.
        text: String,
    }
    /// A form.
    Form {
        /// Where it is sent: the page itself if it does not say.
        action: Option<String>,
        /// `get`, `post` or `dialog`.
        method: String,
        /// Its fields.
        fields: Vec<FormField>,
    }
    /// A field of a form.
    FormField {
        /// Its name.
        name: String,
        /// Such as `text`, `password`, `select`, `textarea`, `submit`.
        kind: String,
        /// What it holds before anybody types; never that of a password.
        value: String,
        /// Whether it must be filled in.
        required: bool,
    }
    /// A script.
    Script {
        /// Where it is, if it is not in the page.
        url: Option<String>,
        /// What the page says that it is, such as `module`.
        kind: String,
        /// The script itself if it is in the page, cut at a limit.
        text: String,
        /// Its whole length in bytes.
        bytes: u64,
    }
    /// A style sheet.
    Style {
        /// Where it is, if it is not in the page.
        url: Option<String>,
        /// The media that it is for.
        media: String,
        /// The style sheet itself if it is in the page, cut at a limit.
        text: String,
        /// Its whole length in bytes.
        bytes: u64,
    }
    /// A piece of JSON-LD.
    JsonLd {
        /// The piece as written, cut at a limit.
        text: String,
        /// Whether it is JSON.
        valid: bool,
    }
    /// A feed that a page names.
    Feed {
        /// Where it is.
        url: String,
        /// What the page calls it.
        title: String,
        /// `application/rss+xml`, `application/atom+xml` or `application/feed+json`.
        kind: String,
    }
    /// The same page in another language.
    Alternate {
        /// Where it is.
        url: String,
        /// Which language, such as `id`, `en-GB` or `x-default`.
        language: String,
    }
    /// An entry of a feed.
    FeedEntry {
        /// Its title.
        title: String,
        /// Where it leads.
        url: Option<String>,
        /// When it was published, as the feed writes it.
        published: Option<String>,
        /// Its text, or what the feed gives of it.
        text: String,
    }
    /// How many of each kind were beyond its limit.
    Dropped {
        /// Open Graph properties.
        open_graph: u32,
        /// Headings.
        headings: u32,
        /// Links.
        links: u32,
        /// Images.
        images: u32,
        /// Tables.
        tables: u32,
        /// Lists.
        lists: u32,
        /// Forms.
        forms: u32,
        /// Scripts.
        scripts: u32,
        /// Style sheets.
        styles: u32,
        /// Pieces of JSON-LD.
        json_ld: u32,
        /// Feeds.
        feeds: u32,
        /// Alternates.
        alternates: u32,
        /// Entries of a feed.
        feed_entries: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::examples::of_schema;

    /// A field that only one of them has is missing in the type, or not there after reading and writing.
    #[test]
    fn the_schema_is_that_of_the_type() {
        let mut schemas = BTreeMap::new();
        put_in_place(&mut schemas);
        let described = of_schema(&schemas["PageContent"], &schemas).unwrap();
        let content: telusur_model::PageContent =
            serde_json::from_value(described.clone()).unwrap();
        assert_eq!(serde_json::to_value(content).unwrap(), described);
    }
}
