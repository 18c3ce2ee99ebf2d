# CPU:  docker build --tag internutopia .
# CUDA: docker build --tag internutopia:cuda --build-arg EXTRAS=all .   (needs the NVIDIA Container Toolkit to run)
# The stage `system` is the dev container.
FROM python:3.12-slim-bookworm AS system
COPY tools/install_system_packages.sh /tmp/
RUN apt-get update && apt-get install --yes --no-install-recommends git make \
    && /tmp/install_system_packages.sh \
    && rm -rf /var/lib/apt/lists/*
ENV MUJOCO_GL=egl

FROM system
# CUDA's libraries come with the wheels of PyTorch and Warp; the driver is the host's
ARG EXTRAS=assets,cli,evaluation,navigation,policies,record,remote,video,viewer
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility
COPY . /src
RUN pip install --no-cache-dir --constraint /src/constraints.txt "/src[${EXTRAS}]" && rm -rf /src
RUN useradd --create-home --home-dir /work user
USER user
WORKDIR /work
ENTRYPOINT ["internutopia"]
CMD ["--help"]
