//! Linear crawls against simulated webs: small examples of what each rule means, and any web
//! against the sequential crawl.

mod meaning;
mod model;
mod play;
mod resume;
mod runs;
