"""Serves a small real model on loopback: llama.cpp's own server, from a package."""

import pathlib
import sys
import time

import xllamacpp

path, window, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
settings = xllamacpp.CommonParams()
settings.model.path = path
settings.model_alias = {"smollm2"}
settings.hostnames = ["127.0.0.1"]
settings.port = port
settings.n_ctx = window
settings.n_parallel = 1
# Two threads get in each other's way on a busy machine.
settings.cpuparams.n_threads = 1
settings.cpuparams_batch.n_threads = 1
settings.endpoint_slots = True
settings.endpoint_props = True
settings.use_jinja = True
settings.chat_template = pathlib.Path(__file__).with_name("real-model.jinja").read_text()
settings.warmup = False
server = xllamacpp.Server(settings)
print("ready", flush=True)
while True:
    time.sleep(60)
