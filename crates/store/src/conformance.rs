//! The suite that every back end passes before it does anything else.
