//! A store on a disk that has as much space as the test says, and bad blocks where it says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use telusur_ledger::{
    Asking, Body, CrawlRecord, CrawlStore, Effects, FrontierStore, KeptRun, LinksOf, NewCrawl,
    NewlyQueued, Packed, PageStore, QueueRange, Removal, ScrubState, Step, StoreChange, StoreError,
    TrapMark, UrlRecord, VerifyReport,
};
use telusur_model::{
    BlobRef, Crawl, CrawlNo, CrawlState, Discovery, EngineFault, Host, HostRow, OriginRow,
    PageRecord, PageUrl, ParsedPage, RawPage, Timestamp, UrlKey,
};
use telusur_store_embedded::EmbeddedStore;

pub(crate) struct ShortDisk {
    pub(crate) store: Arc<EmbeddedStore>,
    pub(crate) free_bytes: AtomicU64,
    /// The crawl whose queue cannot be read.
    pub(crate) unreadable: Option<CrawlNo>,
    /// The crawl whose rows cannot be read when a step of it is committed.
    pub(crate) unreadable_in_steps: Option<CrawlNo>,
    /// Whether nothing can be written.
    pub(crate) is_read_only: bool,
    /// Whether a write panics.
    pub(crate) is_faulty: bool,
    /// The thread that last changed the settings of a crawl.
    pub(crate) changed_by: Mutex<Option<String>>,
}

impl ShortDisk {
    pub(crate) fn of(store: &Arc<EmbeddedStore>) -> Self {
        let (store, free_bytes) = (Arc::clone(store), AtomicU64::new(u64::MAX));
        Self {
            store,
            free_bytes,
            unreadable: None,
            unreadable_in_steps: None,
            is_read_only: false,
            is_faulty: false,
            changed_by: Mutex::default(),
        }
    }
}

impl CrawlStore for ShortDisk {
    fn free_bytes(&self) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.free_bytes.load(Ordering::Relaxed)))
    }

    fn create(&self, new: NewCrawl) -> Result<CrawlRecord, StoreError> {
        self.store.create(new)
    }

    fn crawl(&self, no: CrawlNo) -> Result<Option<CrawlRecord>, StoreError> {
        self.store.crawl(no)
    }

    fn find(&self, text: &str) -> Result<Option<CrawlRecord>, StoreError> {
        self.store.find(text)
    }

    fn crawls(&self) -> Result<Vec<CrawlRecord>, StoreError> {
        self.store.crawls()
    }

    fn set_state(&self, no: CrawlNo, state: CrawlState, at: Timestamp) -> Result<(), StoreError> {
        self.store.set_state(no, state, at)
    }

    fn set_fault(&self, no: CrawlNo, fault: Option<EngineFault>) -> Result<(), StoreError> {
        self.store.set_fault(no, fault)
    }

    fn change(&self, crawl: &Crawl) -> Result<(), StoreError> {
        *self.changed_by.lock().unwrap() = std::thread::current().name().map(str::to_owned);
        self.store.change(crawl)
    }

    fn begin_removal(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.store.begin_removal(no)
    }

    fn removals(&self) -> Result<Vec<Removal>, StoreError> {
        self.store.removals()
    }

    fn delete_removed(&self, no: CrawlNo) -> Result<bool, StoreError> {
        self.store.delete_removed(no)
    }

    fn end_removal(&self, no: CrawlNo) -> Result<(), StoreError> {
        self.store.end_removal(no)
    }

    fn asking(&self) -> Result<Vec<(CrawlNo, Asking)>, StoreError> {
        self.store.asking()
    }

    fn set_asking(&self, no: CrawlNo, asking: Option<Asking>) -> Result<(), StoreError> {
        self.store.set_asking(no, asking)
    }

    fn key_seed(&self) -> u64 {
        self.store.key_seed()
    }

    fn was_closed(&self) -> bool {
        self.store.was_closed()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.store.close()
    }

    fn verify(&self, links_of: LinksOf<'_>) -> Result<VerifyReport, StoreError> {
        self.store.verify(links_of)
    }

    fn scrub(&self, bytes_max: u64, at: Timestamp) -> Result<ScrubState, StoreError> {
        self.store.scrub(bytes_max, at)
    }

    fn scrubbed(&self) -> Result<Option<ScrubState>, StoreError> {
        self.store.scrubbed()
    }
}

impl FrontierStore for ShortDisk {
    fn traps(&self, crawl: CrawlNo) -> Result<Vec<TrapMark>, StoreError> {
        self.store.traps(crawl)
    }

    fn has_room_for_left_out(&self, crawl: &Crawl) -> Result<bool, StoreError> {
        self.store.has_room_for_left_out(crawl)
    }

    fn hosts(&self, crawl: CrawlNo) -> Result<Vec<HostRow>, StoreError> {
        self.store.hosts(crawl)
    }

    fn hosts_asked_since(
        &self,
        crawl: CrawlNo,
        since: Timestamp,
    ) -> Result<Vec<HostRow>, StoreError> {
        self.store.hosts_asked_since(crawl, since)
    }

    fn queued(&self, range: QueueRange<'_>) -> Result<Vec<NewlyQueued>, StoreError> {
        if self.unreadable == Some(range.crawl) {
            return Err(StoreError::Engine("checksum mismatch".into()));
        }
        self.store.queued(range)
    }

    fn drop_known(&self, crawl: CrawlNo, links: &mut Vec<Discovery>) {
        self.store.drop_known(crawl, links);
    }

    fn commit(&self, step: Step) -> Result<Effects, StoreError> {
        if self.is_read_only {
            return Err(StoreError::Engine("sync failed".into()));
        }
        assert!(!self.is_faulty, "a fault of ours");
        let is_of = |crawl| step.events().iter().any(|event| event.crawl() == Some(crawl));
        if let Some(crawl) = self.unreadable_in_steps.filter(|crawl| is_of(*crawl)) {
            let why = "checksum mismatch".into();
            return Err(StoreError::Unreadable {
                table: "urls",
                crawl: Some(crawl),
                why,
                damage: None,
            });
        }
        self.store.commit(step)
    }

    fn url(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError> {
        self.store.url(crawl, url)
    }

    fn sitemap(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<UrlRecord>, StoreError> {
        self.store.sitemap(crawl, url)
    }

    fn runs(&self, crawl: CrawlNo, walk: u32) -> Result<Vec<KeptRun>, StoreError> {
        self.store.runs(crawl, walk)
    }

    fn origin(&self, origin: &str) -> Result<Option<OriginRow>, StoreError> {
        self.store.origin(origin)
    }

    fn origins_of(&self, host: &Host) -> Result<Vec<OriginRow>, StoreError> {
        self.store.origins_of(host)
    }

    fn settled_urls_after(
        &self,
        crawl: CrawlNo,
        after: Option<UrlKey>,
        each: &mut dyn FnMut(UrlKey, UrlRecord) -> bool,
    ) -> Result<(), StoreError> {
        self.store.settled_urls_after(crawl, after, each)
    }
}

impl PageStore for ShortDisk {
    fn pack(
        &self,
        crawl: &Crawl,
        page: &RawPage,
        parsed: Option<&ParsedPage>,
        at: Timestamp,
    ) -> Packed {
        self.store.pack(crawl, page, parsed, at)
    }

    fn page(&self, crawl: CrawlNo, seq: u64) -> Result<Option<PageRecord>, StoreError> {
        self.store.page(crawl, seq)
    }

    fn page_of(&self, crawl: CrawlNo, url: &PageUrl) -> Result<Option<PageRecord>, StoreError> {
        self.store.page_of(crawl, url)
    }

    fn changes_after(&self, seq: u64, max: usize) -> Result<Vec<StoreChange>, StoreError> {
        self.store.changes_after(seq, max)
    }

    fn last_change(&self) -> Result<u64, StoreError> {
        self.store.last_change()
    }

    fn changes_count(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        self.store.changes_count(after, upto)
    }

    fn last_place(&self, crawl: CrawlNo) -> Result<u64, StoreError> {
        self.store.last_place(crawl)
    }

    fn pages_after(
        &self,
        crawl: CrawlNo,
        seq: u64,
        max: usize,
    ) -> Result<Vec<PageRecord>, StoreError> {
        self.store.pages_after(crawl, seq, max)
    }

    fn bodies_reach(&self, crawl: CrawlNo) -> Result<bool, StoreError> {
        self.store.bodies_reach(crawl)
    }

    fn body(&self, crawl: CrawlNo, blob: BlobRef) -> Result<Body, StoreError> {
        self.store.body(crawl, blob)
    }

    fn parsed(&self, crawl: CrawlNo, blob: BlobRef) -> Result<ParsedPage, StoreError> {
        self.store.parsed(crawl, blob)
    }
}
