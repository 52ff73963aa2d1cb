# A static binary and nothing else; runs as nobody, on a read-only root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /fairlead ./cmd/fairlead

FROM scratch
COPY --from=build /fairlead /fairlead
USER 65532:65532
ENTRYPOINT ["/fairlead"]
