//! JSON as the terminal gets it.

pub use telusur_engine::export::write_json_line;
