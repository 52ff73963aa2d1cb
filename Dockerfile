# make image builds the image without docker. The last stage here: a static binary and nothing else; runs as
# nobody, on a read-only root.
# docker build --target csi-node: the same binary with mount(8) and mount.nfs, for the node plugin,
# and with rpcbind and rpc.statd, which run with the component nfs/statd only.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/fairlead-io/fairlead/cli.Version=${VERSION}" -o /fairlead ./cmd/fairlead

FROM debian:12-slim AS csi-node
RUN apt-get update && apt-get install -y --no-install-recommends nfs-common rpcbind && rm -rf /var/lib/apt/lists/*
COPY --from=build /fairlead /fairlead
ENTRYPOINT ["/fairlead"]

FROM scratch
COPY --from=build /fairlead /fairlead
USER 65532:65532
ENTRYPOINT ["/fairlead"]
