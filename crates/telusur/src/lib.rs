//! The parts of the program `telusur`: its command line, its settings, and what it says.
//!
//! Read in this order: [`cli`] is what can be typed, [`settings`] is where values come from,
//! [`commands`] carries a command out, with the engine of [`foreground`] on the store of [`backend`].

pub mod cli;
pub mod settings;
pub mod start_urls;

pub mod commands;
pub mod foreground;
pub mod parsing;

pub mod backend;
pub mod remote;
pub mod surface;

pub mod crawl_request;
pub mod linear_request;

pub mod page_view;
pub mod tables_dir;

pub mod json;
pub mod lines;

pub mod logging;
pub mod message;

pub mod new_file;
pub mod process;
pub mod progress;
pub mod summary;
pub mod terminal;
pub use telusur_model::units;
