# The muster binary alone. DuckDB is linked in statically and needs libstdc++ at
# run time, which distroless/cc has; both stages are Debian 12, for the same libc.
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.release=$VERSION" -o /out/muster ./cmd/muster && mkdir -p /out/data /out/shared/checkpoints

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /out/muster /usr/local/bin/muster
# A new volume takes its owner from the directory it is mounted over.
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/shared /shared
USER 65532:65532
ENV MUSTER_DATA=/data MUSTER_LISTEN=0.0.0.0:8080
EXPOSE 8080
VOLUME /data
# Healthy is ready: the log is replayed. A large one takes its time, hence the long start.
HEALTHCHECK --interval=5s --timeout=4s --retries=3 --start-period=10m CMD ["/usr/local/bin/muster", "health"]
ENTRYPOINT ["/usr/local/bin/muster"]
CMD ["serve"]
