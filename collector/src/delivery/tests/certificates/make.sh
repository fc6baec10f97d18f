#!/bin/sh
# Makes the certificates of the tests anew: an authority, a service that it vouches for, and an authority that knows nobody. They are no secret.
set -eu
cd "$(dirname "$0")"
for name in authority stranger; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj "/CN=test $name" \
        -keyout "$name.key" -out "$name.pem"
done
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" -keyout service.key -out service.csr
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' > service.ext
openssl x509 -req -in service.csr -CA authority.pem -CAkey authority.key -days 36500 -extfile service.ext -out service.pem
rm -f authority.key stranger.key service.csr service.ext *.srl
