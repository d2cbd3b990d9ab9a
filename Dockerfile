# The command alone, without a shell. To run programs under a lock, copy it into their image:
#
#   COPY --from=sqllock /sqllock /usr/local/bin/
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS TARGETARCH
# The version of a release, as v1.2.3: a build context may have no tags of git.
ARG VERSION
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags "-s -w -X github.com/sqllock/sqllock/internal/cli.release=$VERSION" -o /sqllock ./cmd/sqllock

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /zoneinfo.zip
ENV ZONEINFO=/zoneinfo.zip
COPY --from=build /sqllock /sqllock
USER 65532:65532
ENTRYPOINT ["/sqllock"]
