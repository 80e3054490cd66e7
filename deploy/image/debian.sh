#!/bin/sh
# Add the programs that the daemon and hooks call to a Debian image, and the user's folder. Run as root inside the image.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# bash, jq and curl: hooks. git and openssh-client: sources. gpgv: provenance files. tini: process 1. ca-certificates: registries.
apt-get -qq install -y --no-install-recommends bash ca-certificates curl git gpgv jq openssh-client tini
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old
install -d -o 65532 -g 65532 -m 0700 /var/lib/wharfinger
