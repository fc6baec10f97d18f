"""A bucket for tests: moto's server on loopback, which checks signatures and policies by Amazon's own signer (botocore).

Arguments: the bucket, then `NAME=POLICY.json` for each who may ask. Prints one line of JSON: its port, and each one's access key. Ends when its
input does, so that it never outlives the test that started it.
"""

import json
import logging
import os
import sys
import urllib.request

os.environ.update(
    AWS_ACCESS_KEY_ID="owner",
    AWS_SECRET_ACCESS_KEY="owner",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    # No look at a proxy for what is on this machine.
    NO_PROXY="127.0.0.1",
    no_proxy="127.0.0.1",
)

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)


def main() -> None:
    bucket, *askers = sys.argv[1:]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket=bucket)
    iam = boto3.client("iam", endpoint_url=url)
    keys = {}
    for asker in askers:
        name, path = asker.split("=", 1)
        with open(path, encoding="utf-8") as policy:
            document = policy.read()
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="its", PolicyDocument=document)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        keys[name] = [key["AccessKeyId"], key["SecretAccessKey"]]
    # From here on nobody gets in without a signature that fits and a policy that lets him.
    request = urllib.request.Request(f"{url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()
    print(json.dumps({"port": port, "keys": keys}), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
