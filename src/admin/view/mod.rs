//! What is shown, made of what the node knows: the one place that turns status, snapshot, reports and journal into what the API
//! says. The dashboard shows the same.

mod query;

use tokio::sync::broadcast;

use super::dto::{
    AuditDto, ClusterDto, DrainDto, EventDto, ExplanationDto, ForceDto, MonitorDto, NewDrain,
    NewForce, Page, PeerDto, ServiceDto, ServiceRowDto, SourceDto, StatusDto, TrafficDto, ZoneDto,
};

pub use query::{EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery};

/// Who changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The name of the token or of the bearer's subject.
    pub name: String,
    /// Its role.
    pub role: String,
    /// From where.
    pub from: std::net::IpAddr,
}

/// Why something could not be shown or done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// There is none of this name.
    #[error("there is no {0}")]
    NotFound(String),
    /// What was asked makes no sense; the words say what would.
    #[error("{0}")]
    Invalid(String),
    /// It stands against what is there.
    #[error("{0}")]
    Conflict(String),
    /// The node is going down.
    #[error("the node is going down")]
    Gone,
}

/// Reads what the node knows. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    events: broadcast::Sender<EventDto>,
}

impl View {
    /// Skeleton.
    pub async fn status(&self) -> StatusDto {
        unimplemented!()
    }
    /// Skeleton.
    pub fn traffic(&self) -> TrafficDto {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn clusters(&self) -> Vec<ClusterDto> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn cluster(&self, name: &str) -> Result<ClusterDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn services(&self, query: &ServiceQuery) -> Result<Page<ServiceRowDto>, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn service(&self, key: &str) -> Result<ServiceDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn name(&self, hostname: &str) -> Result<ServiceDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn monitors(&self, query: &MonitorQuery) -> Result<Page<MonitorDto>, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub fn events(&self, query: &EventQuery) -> Result<Page<EventDto>, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub fn subscribe(&self) -> broadcast::Receiver<EventDto> {
        unimplemented!()
    }
    /// Skeleton.
    pub fn explain(&self, query: &ExplainQuery) -> Result<ExplanationDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn drains(&self, paging: &Paging) -> Result<Page<DrainDto>, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn drain(&self, id: &str) -> Result<DrainDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn start_drain(
        &self,
        new: NewDrain,
        actor: &Actor,
    ) -> Result<(DrainDto, bool), ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn end_drain(
        &self,
        id: &str,
        reason: &str,
        actor: &Actor,
    ) -> Result<DrainDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn forces(&self, paging: &Paging) -> Result<Page<ForceDto>, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn force(&self, id: &str) -> Result<ForceDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn start_force(
        &self,
        new: NewForce,
        actor: &Actor,
    ) -> Result<(ForceDto, bool), ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn end_force(
        &self,
        id: &str,
        reason: &str,
        actor: &Actor,
    ) -> Result<ForceDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn peers(&self) -> Vec<PeerDto> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn zones(&self) -> Vec<ZoneDto> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn zone(&self, name: &str) -> Result<ZoneDto, ViewError> {
        unimplemented!()
    }
    /// Skeleton.
    pub async fn sources(&self) -> Vec<SourceDto> {
        unimplemented!()
    }
    /// Skeleton.
    pub fn audit(&self, paging: &Paging) -> Result<Page<AuditDto>, ViewError> {
        unimplemented!()
    }
}
