//! [`Admission`]: how crawls get to run in the process that owns the data directory.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use telusur_ledger::{CrawlRecord, NewCrawl, Store, StoreError};
use telusur_model::{Crawl, CrawlNo};

use crate::error::RequestError;
use crate::handle::EngineHandle;

/// Stores crawls and runs them when there is room. A service has a queue; other processes run them at once.
/// All methods block.
pub trait Admission: Send + Sync {
    /// Stores a new crawl and runs it.
    fn admit(&self, crawl: Crawl) -> Result<CrawlRecord, RequestError>;

    /// A stored crawl goes on.
    fn go_on(&self, crawl: CrawlNo) -> Result<(), RequestError>;
}

/// Runs every crawl at once.
pub(crate) struct AtOnce {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: EngineHandle,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl Admission for AtOnce {
    fn admit(&self, crawl: Crawl) -> Result<CrawlRecord, RequestError> {
        self.engine.check(&crawl)?;
        let record = create(self.store.as_ref(), crawl)?;
        self.runtime.block_on(self.engine.run(record.crawl.no))?;
        Ok(record)
    }

    fn go_on(&self, crawl: CrawlNo) -> Result<(), RequestError> {
        match self.engine.is_here(crawl) {
            true => self.runtime.block_on(self.engine.resume(crawl)),
            false => self.runtime.block_on(self.engine.run(crawl)),
        }
    }
}

/// Stores a new crawl.
pub fn create(store: &dyn Store, crawl: Crawl) -> Result<CrawlRecord, StoreError> {
    store.create(NewCrawl { crawl, random: random_bits()? })
}

/// 128 random bits.
fn random_bits() -> Result<u128, StoreError> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|source| StoreError::Io { doing: "read /dev/urandom".to_owned(), source })?;
    Ok(u128::from_le_bytes(bytes))
}
