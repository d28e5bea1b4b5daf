//! The ledger on rows in memory.

mod conformance;
