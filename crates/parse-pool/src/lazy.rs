//! [`LazyPool`]: a pool that is started by the first page. A command that never comes to a page starts no
//! process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telusur_model::{PageContent, ParsedPage, RawPage, SearchPage};

use crate::parser::{Parser, PoolError, ReadPage, VisibleText};
use crate::pool::{ParserPool, PoolSettings};

/// Parses in jailed children, which are started when the first page comes.
#[derive(Debug)]
pub struct LazyPool {
    settings: PoolSettings,
    /// Held to look, and while the children start: others that come in between need them as well.
    pool: Mutex<Option<Arc<ParserPool>>>,
}

impl LazyPool {
    /// A pool with these settings, and no children yet.
    pub fn new(settings: PoolSettings) -> Self {
        Self { settings, pool: Mutex::default() }
    }

    /// Whether a page has come, and the children were started.
    pub fn is_started(&self) -> bool {
        self.started().is_some()
    }

    fn pool(&self) -> Result<Arc<ParserPool>, PoolError> {
        let mut pool = self.started();
        if let Some(pool) = &*pool {
            return Ok(Arc::clone(pool));
        }
        let started = ParserPool::start(self.settings.clone())?;
        Ok(Arc::clone(pool.insert(Arc::new(started))))
    }

    fn started(&self) -> MutexGuard<'_, Option<Arc<ParserPool>>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parser for LazyPool {
    fn parse_all(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<ParsedPage>>, PoolError> {
        match pages {
            [] => Ok(Vec::new()),
            pages => self.pool()?.parse_all(pages, text),
        }
    }

    fn read_for_search(
        &self,
        pages: &[&RawPage],
        text: VisibleText,
    ) -> Result<Vec<ReadPage<SearchPage>>, PoolError> {
        match pages {
            [] => Ok(Vec::new()),
            pages => self.pool()?.read_for_search(pages, text),
        }
    }

    fn read_all(&self, pages: &[&RawPage]) -> Result<Vec<ReadPage<PageContent>>, PoolError> {
        match pages {
            [] => Ok(Vec::new()),
            pages => self.pool()?.read_all(pages),
        }
    }

    fn interrupt(&self) {
        let started = self.started().clone();
        if let Some(pool) = started {
            pool.interrupt();
        }
    }
}
