//! [`ParseLimits`]: every bound of the parser, with its name and its reason.

/// What a page may cost. Whatever lies beyond a limit is left out and leaves a
/// [`Warning`](telusur_model::Warning); the rest of the page is read as usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Elements open at the same time. 512 is what Blink and WebKit allow; html5ever walks the
    /// whole stack for many tags, so that its time grows with the square of the depth.
    pub depth_max: usize,
    /// Attributes of one tag that are looked at.
    pub attributes_max: usize,
    /// Elements that the tree builder may add by repairing `<b>`, `<i>`, `<font>` and the like
    /// after wrong nesting. The standard allows dozens for every `<p>`; of 812 real pages that
    /// were counted, the worst needed 28.
    pub repairs_max: usize,
    /// Links that are kept, each URL once.
    pub links_max: usize,
    /// Bytes of the title.
    pub title_bytes_max: usize,
    /// Bytes of the text of one link.
    pub anchor_bytes_max: usize,
    /// Bytes of the description, of the keywords and of the robots rules, each.
    pub meta_bytes_max: usize,
    /// Bytes of visible text. Four times the default limit of a body: a body in an old encoding
    /// grows up to threefold when it becomes UTF-8, so that a whole body always fits.
    pub text_bytes_max: usize,
}

impl Default for ParseLimits {
    fn default() -> Self {
        Self {
            depth_max: 512,
            attributes_max: 1_000,
            repairs_max: 10_000,
            links_max: 10_000,
            title_bytes_max: 1 << 10,
            anchor_bytes_max: 256,
            meta_bytes_max: 4 << 10,
            text_bytes_max: 4 << 20,
        }
    }
}
