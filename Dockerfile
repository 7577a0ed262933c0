# The image of Diwan for a cluster: `make build`, then `docker build -t … .`
FROM gcr.io/distroless/static:nonroot
COPY bin/diwan bin/diwan-collector bin/diwan-entry /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/diwan"]
