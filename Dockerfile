# hopplus on CPU: docker build -t hopplus . && docker run --rm -v "$PWD/runs:/hopplus/runs" hopplus train ppo
FROM python:3.12-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir . && rm -rf /src
WORKDIR /hopplus
ENTRYPOINT ["hopplus"]
CMD ["--help"]
