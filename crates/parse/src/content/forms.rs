//! The forms of a page: where they are sent, how, and their fields.

use html5ever::local_name;
use telusur_model::{Form, FormField, PageContent};

use crate::ContentLimits;
use crate::content::{Base, push_bounded, short};
use crate::text::TextWriter;
use crate::tree::ElementRef;

pub(super) struct FormCollector<'t> {
    base: Base<'t>,
    limits: &'t ContentLimits,
    forms: Vec<Form>,
    dropped: u32,
    /// HTML has no form inside another one.
    form: Option<Form>,
    /// The text of the open `<button>` or `<textarea>`, which is its value.
    text: Option<TextWriter>,
}

impl<'t> FormCollector<'t> {
    pub(super) fn new(base: Base<'t>, limits: &'t ContentLimits) -> Self {
        Self { base, limits, forms: Vec::new(), dropped: 0, form: None, text: None }
    }

    pub(super) fn open(&mut self, element: ElementRef<'t>) {
        match element.name.local {
            local_name!("form") => self.open_form(element),
            local_name!("input") => {
                let kind = short(element.attribute(&local_name!("type"))).to_ascii_lowercase();
                let kind = if kind.is_empty() { "text".to_owned() } else { kind };
                self.add_field(element, kind);
            }
            local_name!("select") => self.add_field(element, "select".to_owned()),
            local_name!("textarea") => {
                self.add_field(element, "textarea".to_owned());
                self.text = Some(TextWriter::new(self.limits.field_bytes_max));
            }
            local_name!("button") => {
                let kind = short(element.attribute(&local_name!("type"))).to_ascii_lowercase();
                let kind = if kind.is_empty() { "submit".to_owned() } else { kind };
                self.add_field(element, kind);
                self.text = Some(TextWriter::new(self.limits.field_bytes_max));
            }
            _ => {}
        }
    }

    fn open_form(&mut self, element: ElementRef<'t>) {
        self.end_form();
        let action = element.attribute(&local_name!("action")).map(str::trim_ascii);
        let action = match action.filter(|action| !action.is_empty()) {
            Some(action) => self.base.join(action),
            None => Some(self.base.page.clone()),
        };
        let method = short(element.attribute(&local_name!("method"))).to_ascii_lowercase();
        let method = match method.as_str() {
            "post" | "dialog" => method,
            // What else is written there means `get`, says the standard.
            _ => "get".to_owned(),
        };
        self.form = Some(Form { action, method, fields: Vec::new() });
    }

    fn add_field(&mut self, element: ElementRef<'t>, kind: String) {
        let Some(form) = &mut self.form else { return };
        if form.fields.len() >= self.limits.fields_max {
            return;
        }
        let value = match kind.as_str() {
            "password" => String::new(),
            _ => short(element.attribute(&local_name!("value"))),
        };
        form.fields.push(FormField {
            name: short(element.attribute(&local_name!("name"))),
            kind,
            value,
            required: element.attribute(&local_name!("required")).is_some(),
        });
    }

    pub(super) fn text(&mut self, text: &str) {
        if let Some(writer) = &mut self.text {
            writer.flowing(text);
        }
    }

    pub(super) fn close(&mut self, element: ElementRef<'t>) {
        match element.name.local {
            local_name!("form") => self.end_form(),
            local_name!("button") | local_name!("textarea") => {
                let text = self.text.take().map(TextWriter::into_string).unwrap_or_default();
                let field = self.form.as_mut().and_then(|form| form.fields.last_mut());
                if let Some(field) = field.filter(|field| field.value.is_empty()) {
                    field.value = text;
                }
            }
            _ => {}
        }
    }

    fn end_form(&mut self) {
        if let Some(form) = self.form.take() {
            push_bounded(&mut self.forms, form, self.limits.forms_max, &mut self.dropped);
        }
    }

    pub(super) fn finish(mut self, content: &mut PageContent) {
        self.end_form();
        content.forms = self.forms;
        content.dropped.forms = self.dropped;
    }
}
