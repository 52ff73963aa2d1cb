# The last stage: a static binary and nothing else; runs as nobody, on a read-only root.
# docker build --target csi-node: the same binary with mount(8) and mount.nfs, for the node plugin.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /fairlead ./cmd/fairlead

FROM debian:12-slim AS csi-node
RUN apt-get update && apt-get install -y --no-install-recommends nfs-common && rm -rf /var/lib/apt/lists/*
COPY --from=build /fairlead /fairlead
ENTRYPOINT ["/fairlead"]

FROM scratch
COPY --from=build /fairlead /fairlead
USER 65532:65532
ENTRYPOINT ["/fairlead"]
