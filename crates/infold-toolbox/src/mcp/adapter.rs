//! The protocol: with its submodule, the only file that knows the types of the crate `rmcp`, which change from
//! version to version.

mod http;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::http::HeaderMap;
use infold_provider::HttpAddress;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest, ContentBlock, CustomResult,
    Implementation, ListToolsRequest, ListToolsResult, PaginatedRequestParams, PingRequest,
    ProtocolVersion, ResourceContents, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection with a server.
#[derive(Debug)]
pub struct McpConnection(RunningService<RoleClient, ListWatcher>);

/// A tool as a server lists it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    pub read_only: bool,
}

/// The tools that a server listed.
#[derive(Debug)]
pub struct ListedTools {
    pub tools: Vec<ServerTool>,
    /// Whether the server has more tools than were requested.
    pub has_more: bool,
    /// The number of descriptions that are no tools.
    pub malformed: usize,
}

/// The output of a call.
#[derive(Debug)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// As all versions but the newest have it.
    Initialize,
    /// As versions from 2026-07-28 have it, where a server may know no other.
    Discover,
}

/// Why there is no connection.
#[derive(Debug)]
pub struct HandshakeError {
    pub text: String,
    /// The server answered, and does not know this handshake.
    pub is_refusal: bool,
}

impl HandshakeError {
    pub fn new(text: String) -> HandshakeError {
        HandshakeError {
            text,
            is_refusal: false,
        }
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub enum RequestError {
    /// The server answered with an error.
    Answered(String),
    /// The server answered with something that is no result of the request.
    Unreadable(String),
    /// The connection is gone.
    Lost(String),
}

/// Connects with a server over its standard output and input.
pub async fn connect_stdio(
    stdout: impl AsyncRead + Send + Unpin + 'static,
    stdin: impl AsyncWrite + Send + Unpin + 'static,
    handshake: Handshake,
) -> Result<McpConnection, HandshakeError> {
    // The reader of the output limits the length of lines already.
    let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
    connect(transport, handshake).await
}

/// Connects with a server over streamable HTTP; no response may be longer than `max_response_bytes`.
pub async fn connect_http(
    address: &HttpAddress,
    headers: &HeaderMap,
    max_response_bytes: usize,
    handshake: Handshake,
) -> Result<McpConnection, HandshakeError> {
    let client = http::HttpClient::new(address.clone(), headers.clone(), max_response_bytes);
    let config = http::transport_config();
    connect(
        StreamableHttpClientTransport::with_client(client, config),
        handshake,
    )
    .await
}

async fn connect<T, E, A>(
    transport: T,
    handshake: Handshake,
) -> Result<McpConnection, HandshakeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let lifecycle = match handshake {
        Handshake::Initialize => ClientLifecycleMode::Initialize,
        Handshake::Discover => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let served = ListWatcher::default()
        .serve_with_lifecycle(transport, lifecycle)
        .await;
    served.map(McpConnection).map_err(|error| HandshakeError {
        is_refusal: matches!(error, ClientInitializeError::JsonRpcError(_)),
        text: connect_error_text(error),
    })
}

fn connect_error_text(error: ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended without an answer".to_owned(),
        // A process that ends at once may do so before or after it is written to.
        ClientInitializeError::TransportError { error, .. }
            if error
                .error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) =>
        {
            "it ended without an answer".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => {
            format!("it cannot be reached: {}", error.error)
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("it answered with an error: {}", error.message)
        }
        error => error.to_string(),
    }
}

/// Notes that a server changed its list of tools.
#[derive(Debug, Default)]
struct ListWatcher {
    is_changed: Arc<AtomicBool>,
}

impl ClientHandler for ListWatcher {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("infold", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.is_changed.store(true, Ordering::Relaxed);
    }
}

impl McpConnection {
    /// Says whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed() || self.0.peer().is_transport_closed()
    }

    /// Says whether the list of tools changed since this was last asked.
    pub fn take_list_changed(&self) -> bool {
        self.0.service().is_changed.swap(false, Ordering::Relaxed)
    }

    /// Lists the tools of the server, at most `max_tools`.
    pub async fn list_tools(&self, max_tools: usize) -> Result<ListedTools, RequestError> {
        let mut tools = Vec::new();
        let (mut cursor, mut malformed) = (None, 0);
        // A server may give new cursors for ever, with nothing on the pages.
        for _ in 0..=max_tools {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let (page, count) = self.list_page(params).await?;
            malformed += count;
            tools.extend(page.tools.into_iter().map(server_tool));
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() || tools.len() > max_tools {
                break;
            }
        }
        let has_more = cursor.is_some() || tools.len() > max_tools;
        tools.truncate(max_tools);
        Ok(ListedTools {
            tools,
            has_more,
            malformed,
        })
    }

    /// Requests a page of the list; returns also how many descriptions on it are no tools. These hide no others.
    async fn list_page(
        &self,
        params: PaginatedRequestParams,
    ) -> Result<(ListToolsResult, usize), RequestError> {
        let peer = self.0.peer();
        match peer.list_tools(Some(params.clone())).await {
            Ok(page) => return Ok((page, 0)),
            Err(ServiceError::UnexpectedResponse) => {}
            Err(error) => return Err(request_error(error)),
        }
        // The page as a whole is not what the protocol requires: it is requested once more, and its tools read one by one.
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = peer.send_request(request).await.map_err(request_error)?;
        let unreadable = || request_error(ServiceError::UnexpectedResponse);
        let ServerResult::CustomResult(CustomResult(page)) = page else {
            return Err(unreadable());
        };
        let listed = page["tools"].as_array().ok_or_else(unreadable)?;
        let tools = listed
            .iter()
            .map(|tool| serde_json::from_value(tool.clone()));
        let tools: Vec<_> = tools.flatten().collect();
        if tools.is_empty() {
            return Err(unreadable());
        }
        let malformed = listed.len() - tools.len();
        let mut read = ListToolsResult::with_all_items(tools);
        read.next_cursor = page["nextCursor"].as_str().map(str::to_owned);
        Ok((read, malformed))
    }

    /// Calls a tool. Dropping the future sends a cancellation to the server.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolOutput, RequestError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.0.call_tool(params).await.map_err(request_error)?;
        Ok(ToolOutput {
            is_error: result.is_error == Some(true),
            text: result_text(result),
        })
    }

    /// Says whether the server still answers.
    pub async fn answers_within(&self, limit: Duration) -> bool {
        let ping = self
            .0
            .peer()
            .send_request(ClientRequest::PingRequest(PingRequest::default()));
        // An error is an answer, too: newer versions have no ping.
        matches!(
            tokio::time::timeout(limit, ping).await,
            Ok(Ok(_) | Err(ServiceError::McpError(_)))
        )
    }

    /// Closes the connection, of a process its input.
    pub async fn close(mut self, limit: Duration) {
        let _ = self.0.close_with_timeout(limit).await;
    }
}

fn server_tool(tool: rmcp::model::Tool) -> ServerTool {
    let annotations = tool.annotations.unwrap_or_default();
    let title = tool.title.or(annotations.title);
    let description = tool.description.map(|description| description.into_owned());
    let mut schema = Arc::unwrap_or_clone(tool.input_schema);
    schema
        .entry("type")
        .or_insert_with(|| Value::from("object"));
    ServerTool {
        name: tool.name.into_owned(),
        description: description.or(title).unwrap_or_default(),
        input_schema: Value::Object(schema),
        read_only: annotations.read_only_hint == Some(true),
    }
}

fn request_error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(error) => RequestError::Answered(error.message.into_owned()),
        ServiceError::TransportSend(error) => RequestError::Lost(error.error.to_string()),
        ServiceError::TransportClosed => RequestError::Lost("the connection ended".to_owned()),
        error => RequestError::Unreadable(error.to_string()),
    }
}

/// Returns the text of a result; other content is replaced by its description.
fn result_text(result: CallToolResult) -> String {
    if let (true, Some(structured)) = (result.content.is_empty(), &result.structured_content) {
        return structured.to_string();
    }
    let blocks: Vec<String> = result.content.into_iter().map(block_text).collect();
    blocks.join("\n")
}

fn block_text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => binary_text("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary_text("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let mime_type = mime_type.unwrap_or_default();
                binary_text(&format!("resource {uri}"), &mime_type, &blob)
            }
            _ => UNKNOWN_CONTENT.to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
        _ => UNKNOWN_CONTENT.to_owned(),
    }
}

const UNKNOWN_CONTENT: &str = "[content of an unknown kind, not shown]";

fn binary_text(what: &str, mime_type: &str, base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    format!("[{what} {mime_type}, about {bytes} bytes, not shown]")
}
