//! A minimal WebSocket client.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest expected message.
const MAX_MESSAGE: u64 = 1024 * 1024;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The receiving half.
pub(super) struct Incoming(BufReader<OwnedReadHalf>);

/// The sending half.
pub(super) struct Outgoing(OwnedWriteHalf);

/// A received frame.
pub(super) enum Frame {
    Text(String),
    Ping,
    Pong,
    Other,
}

/// Opens a WebSocket.
pub(super) async fn open(address: &str) -> Result<(Incoming, Outgoing)> {
    let (incoming, mut outgoing) = TcpStream::connect(address).await?.into_split();
    let request = format!(
        "GET /ws HTTP/1.1\r\nhost: {address}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    outgoing.write_all(request.as_bytes()).await?;
    let mut incoming = BufReader::new(incoming);
    let mut line = String::new();
    let head = async {
        incoming.read_line(&mut line).await?;
        ensure!(line.starts_with("HTTP/1.1 101"), "the WebSocket was refused: {line}");
        loop {
            line.clear();
            ensure!(incoming.read_line(&mut line).await? > 0, "the connection ended");
            if line == "\r\n" {
                return Ok(());
            }
        }
    };
    timeout(TIMEOUT, head).await.context("no answer")??;
    Ok((Incoming(incoming), Outgoing(outgoing)))
}

impl Outgoing {
    pub(super) async fn send_text(&mut self, text: &str) -> Result<()> {
        self.send(TEXT, text.as_bytes()).await
    }

    pub(super) async fn ping(&mut self) -> Result<()> {
        self.send(PING, &[]).await
    }

    pub(super) async fn pong(&mut self) -> Result<()> {
        self.send(PONG, &[]).await
    }

    // A client must mask its frames; a mask of zeros changes nothing.
    async fn send(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let mut frame = vec![0x80 | kind];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).context("the message is too long")?.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        Ok(self.0.write_all(&frame).await?)
    }
}

impl Incoming {
    /// The next frame.
    pub(super) async fn next(&mut self) -> Result<Frame> {
        let [kind, length] = [self.0.read_u8().await?, self.0.read_u8().await?];
        let length = match length {
            126 => u64::from(self.0.read_u16().await?),
            127 => self.0.read_u64().await?,
            length => u64::from(length),
        };
        ensure!(length <= MAX_MESSAGE, "a message of {length} bytes");
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await?;
        match kind & 0x0f {
            TEXT => Ok(Frame::Text(String::from_utf8(payload)?)),
            PING => Ok(Frame::Ping),
            PONG => Ok(Frame::Pong),
            CLOSE => bail!("the server closed the connection"),
            _ => Ok(Frame::Other),
        }
    }

    /// Discards the available bytes; returns their number, or zero at the end.
    pub(super) async fn skip(&mut self) -> Result<usize> {
        let there = self.0.fill_buf().await?.len();
        self.0.consume(there);
        Ok(there)
    }
}
