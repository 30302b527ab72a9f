# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # read by the scripts that source this file
# What the series is based on. Everything that names the base reads it here.

PIN_PACKAGE=linux-source-7.3
PIN_VERSION='7.3.4-1~bpo13+1'
PIN_SUITE=trixie-backports
PIN_TARBALL=linux-source-7.3.tar.xz
PIN_TARBALL_SHA256=76df1affb19f24926949369be1d74b60071c963c598ce8780bddd4bbf0fc3bc4
PIN_TREE=5b1b93321fb4c4dd9c489ce15c4f3caaadd798d7
PIN_COMMIT=6f681d4bc6a56cba05574e9e54c4a52b87eee7bc

# The import commit is a function of these and of the tree, nothing else.
PIN_NAME='linux-source import'
PIN_EMAIL='linux-source@localhost'
PIN_DATE='2026-11-15T22:30:00+0000'
PIN_SUBJECT="Linux 7.3.4 as in Debian $PIN_PACKAGE $PIN_VERSION"
PIN_BODY="The files of $PIN_TARBALL, unchanged."
